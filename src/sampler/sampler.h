// Sampling chain: a pure function of (parameters, logits, history, position). Order: logit bias, repetition /
// presence / frequency penalties over the last `penalty_last_n` tokens, top-k, temperature, softmax, min-p,
// top-p, draw. Temperature 0 is greedy: the largest logit after bias and penalties, ties to the lower id. A
// draw uses random_uniform(seed, stream, position, 0): no generator state, so restore, fork and replay need
// only the counter. Arithmetic: docs/sampling.md. Softmax weights are whole numbers (weight.h), so sums have
// no order and every machine, vector width and algorithm draws the same token. One Sampler is for one thread
// at a time. Cost, 49,152 tokens: greedy about 5 us; temperature with top-p 0.25 to 0.4 ms.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "sampler/penalties.h"
#include "sampler/select.h"

namespace driftwood::sampler {

struct SamplerParams {
  float temperature = 0.0f;
  int32_t top_k = 0;  // 0: off
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  int32_t penalty_last_n = 64;                        // 0: off, -1: whole history
  std::vector<std::pair<int32_t, float>> logit_bias;  // added; -inf forbids the token
  uint64_t seed = 0;
  uint64_t stream = 0;  // forks: stream 0 continues identically, another re-keys
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
  // Tokens whose logit is -inf are forbidden, too. invalid_argument: parameters out of range (validate() says
  // which), an id of `history` outside the vocabulary, or a mask of the wrong length.
  Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> history, int64_t position,
                         std::span<const uint64_t> allowed = {});

 private:
  // The logits after bias, penalties and mask: `logits` itself if there is nothing to change.
  Result<std::span<const float>> adjust(std::span<const float> logits, std::span<const int32_t> history,
                                        std::span<const uint64_t> allowed);
  Result<int32_t> draw(std::span<const float> logits, int64_t position);

  SamplerParams params_;
  Penalties penalties_;
  // Reused, no allocation in steady state.
  std::vector<float> adjusted_;
  std::vector<float> values_;
  std::vector<RankedValue> kept_;
  std::vector<uint64_t> weights_;
  std::vector<RankedWeight> scratch_;
};

}  // namespace driftwood::sampler
