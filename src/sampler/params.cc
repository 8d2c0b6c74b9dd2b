#include <cmath>
#include <limits>
#include <string>

#include "sampler/sampler.h"
#include "sampler/weight.h"

namespace driftwood::sampler {
namespace {

Status out_of_bounds(const char* field, double value, const char* allowed) {
  return invalid_argument(std::string(field) + " is " + std::to_string(value) + "; it must be " + allowed);
}

Status check_finite(const char* field, float value) {
  return std::isfinite(value) ? Status::ok() : out_of_bounds(field, value, "a finite number");
}

Status check_share(const char* field, float value) {
  return value >= 0.0f && value <= 1.0f ? Status::ok() : out_of_bounds(field, value, "between 0 and 1");
}

Status check_bias(const std::pair<int32_t, float>& entry, int64_t vocab_size) {
  const auto& [id, bias] = entry;
  if (id < 0 || id >= vocab_size) {
    return invalid_argument("logit_bias names token " + std::to_string(id) + "; ids go from 0 to " +
                            std::to_string(vocab_size - 1));
  }
  if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
    return invalid_argument("logit_bias of token " + std::to_string(id) + " is " + std::to_string(bias) +
                            "; it must be a finite number, or -inf to forbid the token");
  }
  return Status::ok();
}

}  // namespace

Status validate(const SamplerParams& params, int64_t vocab_size) {
  if (vocab_size < 1 || vocab_size > kMaxVocabulary) {
    return invalid_argument("the vocabulary has " + std::to_string(vocab_size) +
                            " tokens; it must have 1 to " + std::to_string(kMaxVocabulary));
  }
  if (!std::isfinite(params.temperature) || params.temperature < 0.0f) {
    return out_of_bounds("temperature", params.temperature, "0 (greedy) or a finite number above it");
  }
  if (params.top_k < 0) return out_of_bounds("top_k", params.top_k, "0 (off) or more");
  DW_RETURN_IF_ERROR(check_share("top_p", params.top_p));
  DW_RETURN_IF_ERROR(check_share("min_p", params.min_p));
  if (!std::isfinite(params.repetition_penalty) || params.repetition_penalty <= 0.0f) {
    return out_of_bounds("repetition_penalty", params.repetition_penalty, "a finite number above 0 (1: off)");
  }
  DW_RETURN_IF_ERROR(check_finite("presence_penalty", params.presence_penalty));
  DW_RETURN_IF_ERROR(check_finite("frequency_penalty", params.frequency_penalty));
  if (params.penalty_last_n < -1) {
    return out_of_bounds("penalty_last_n", params.penalty_last_n, "-1 (whole history), 0 (off) or more");
  }
  for (const auto& entry : params.logit_bias) DW_RETURN_IF_ERROR(check_bias(entry, vocab_size));
  return Status::ok();
}

}  // namespace driftwood::sampler
