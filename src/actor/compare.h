// Two frozen actors compared byte for byte: what a proof of continuity needs.
//
// Left out is what tells where an actor has been and not how it goes on: epoch, effects' sequence, readings
// of the clocks, time left of timers, parent, and whether KV lies in memory or in files.
#pragma once

#include <string>

#include "actor/frozen_actor.h"

namespace driftwood::actor {

// The same with its KV read, if it lies in files.
Result<FrozenActor> with_kv_bytes(const FrozenActor& frozen);

// What differs first: "memory byte 65540", "session 4097, KV block 1, byte 512"; empty if nothing does.
Result<std::string> first_difference(const FrozenActor& a, const FrozenActor& b);

}  // namespace driftwood::actor
