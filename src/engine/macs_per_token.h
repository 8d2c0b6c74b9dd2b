// How many multiply-accumulates the weights cost a token of a prompt: what a measured speed is compared with.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/loaded_model.h"

namespace driftwood::engine {

// By the arithmetic of the kernels: int8 activations meet quantised weights, f32 activations dense ones.
struct MacsPerToken {
  int64_t int8 = 0;
  int64_t f32 = 0;
};

// Every matrix of the graph but the head, which only rows whose logits are wanted go through. Attention is
// not counted: it grows with the context.
Result<MacsPerToken> macs_per_prompt_token(const LoadedModel& model);

}  // namespace driftwood::engine
