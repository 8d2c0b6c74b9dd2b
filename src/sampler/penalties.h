// Repetition, presence and frequency penalties, as Hugging Face, OpenAI and llama.cpp define them.
//
// For each token that occurs c > 0 times in the window, with logit l:
//   repetition: l > 0 ? l / r : l * r; then l - c * frequency - presence, in this order, each step rounded to
//   f32.
// One product and one difference are rounded separately (no FMA). Cost: the window's length, not the
// vocabulary's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace driftwood::sampler {

struct PenaltyParams {
  float repetition = 1.0f;
  float presence = 0.0f;
  float frequency = 0.0f;
  bool active() const { return repetition != 1.0f || presence != 0.0f || frequency != 0.0f; }
};

class Penalties {
 public:
  // Preconditions: every id of `window` is an index of `logits`.
  void apply(const PenaltyParams& params, std::span<const int32_t> window, std::span<float> logits);

 private:
  std::vector<int32_t> counts_;   // by token, all zero between calls
  std::vector<int32_t> present_;  // the tokens of the window, each once
};

}  // namespace driftwood::sampler
