#include "sampler/penalties.h"

namespace driftwood::sampler {

void Penalties::apply(const PenaltyParams& params, std::span<const int32_t> window, std::span<float> logits) {
  if (counts_.size() < logits.size()) counts_.resize(logits.size());
  present_.clear();
  for (int32_t id : window) {
    if (counts_[id]++ == 0) present_.push_back(id);
  }
  for (int32_t id : present_) {
    float logit = logits[id];
    logit = logit > 0.0f ? logit / params.repetition : logit * params.repetition;
    logit -= static_cast<float>(counts_[id]) * params.frequency;
    logit -= params.presence;
    logits[id] = logit;
    counts_[id] = 0;
  }
}

}  // namespace driftwood::sampler
