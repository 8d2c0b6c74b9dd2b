// ActorSaver: saves one actor again and again, each time only what changed.
//
// It remembers the digests of the KV blocks of the last save, and pins those blocks, so that equal addresses
// mean equal bytes: a block is hashed once. Memory pages are hashed where they were written since the image
// the actor lives on. What the store has is not written again.
//
// Threads: one at a time; the actor itself goes on meanwhile. Ownership: borrows the store. Cost of holding
// on: blocks that the actor gave back since the last save stay until the next one, or until this goes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actor/actor_sections.h"

namespace driftwood::actor {

class ActorSaver {
 public:
  explicit ActorSaver(snapshot::Store* store) : store_(store) {}

  // `name` may be empty. The parent recorded is the last save of this saver, else what the actor was thawed
  // from. `notes` go into the snapshot's origin.
  Result<snapshot::SaveReport> save(const FrozenActor& frozen, const std::string& name,
                                    const std::map<std::string, std::string>& notes = {});

 private:
  snapshot::Store* const store_;
  std::string last_hash_;
  KnownBlocks known_;
  std::vector<std::shared_ptr<const void>> pins_;
};

}  // namespace driftwood::actor
