// Sampling chain: a pure function of (parameters, logits, history, position). Order: logit bias, repetition /
// presence / frequency penalties over the last `penalty_last_n` tokens, top-k, temperature, softmax, min-p, top-p,
// draw. Temperature 0 is greedy: the largest logit after bias and penalties, ties to the lower id. A draw uses
// random_uniform(seed, stream, position, 0): no generator state, so restore, fork and replay need only the counter.
// Arithmetic: base/math.h, fixed order, the same bits on every machine. Docs: docs/sampling.md.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace driftwood::sampler {

struct SamplerParams {
  float temperature = 0.0f;
  int32_t top_k = 0;              // 0: off
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  int32_t penalty_last_n = 64;    // 0: off, -1: whole history
  std::vector<std::pair<int32_t, float>> logit_bias;
  uint64_t seed = 0;
  uint64_t stream = 0;            // forks: stream 0 continues identically, another re-keys
};

// invalid_argument naming the field and its allowed range.
Status validate(const SamplerParams& params, int64_t vocab_size);

class Sampler {
 public:
  explicit Sampler(SamplerParams params) : params_(std::move(params)) {}
  const SamplerParams& params() const { return params_; }
  void set_params(SamplerParams params) { params_ = std::move(params); }

  // The token drawn at `position` (index the new token will have). `allowed` (bit i of word i / 64), if not
  // empty, forbids every token whose bit is 0; if nothing is left: failed_precondition. NaN logits never win.
  Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> history, int64_t position,
                         std::span<const uint64_t> allowed = {});

 private:
  SamplerParams params_;
  std::vector<std::pair<float, int32_t>> scratch_;  // reused, no allocation in steady state
  std::vector<float> adjusted_;
};

}  // namespace driftwood::sampler
