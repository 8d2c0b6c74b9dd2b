// How an actor's instance is set up: its limits, and WASI with the actor's own clock, random numbers and
// outputs.
#pragma once

#include "actor/context.h"

namespace driftwood::actor {

// `context` outlives the instance.
wasm::InstanceOptions instance_options_of(ActorContext* context);

}  // namespace driftwood::actor
