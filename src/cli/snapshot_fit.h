// Does a snapshot's actor mean the same thing here? Compares its identity with this process's, and permits
// the one difference that a person may permit: another arithmetic.
#pragma once

#include <map>
#include <string>

#include "actor/frozen_actor.h"
#include "engine/engine.h"
#include "snapshot/identity.h"

namespace driftwood::cli {

// What an actor's later snapshots tell of what its earlier ones told.
std::map<std::string, std::string> inherited_notes(const snapshot::Origin& origin);

// failed_precondition names every field that differs, with both values. `engine` may be null. With
// `allow_numerics_change`, a differing numerics id is taken over into `frozen`, and `notes` of the snapshots
// to come say so, after what they say already.
Status fit_actor(const std::string& which, const wasm::Module& module, engine::Engine* engine,
                 bool allow_numerics_change, actor::FrozenActor* frozen,
                 std::map<std::string, std::string>* notes);

}  // namespace driftwood::cli
