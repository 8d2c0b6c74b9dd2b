// Message: one message on its way to an actor.
#pragma once

#include <cstdint>
#include <vector>

#include "actor/actor.h"

namespace driftwood::actor {

struct Message {
  ActorId sender = kOutside;
  uint64_t epoch = 0;     // of the sender when it sent
  uint64_t sequence = 0;  // the sender's
  std::vector<uint8_t> bytes;
};

}  // namespace driftwood::actor
