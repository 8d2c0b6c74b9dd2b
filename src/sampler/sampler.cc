#include "sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/rng.h"
#include "sampler/argmax.h"
#include "sampler/weight.h"

namespace driftwood::sampler {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr int64_t kWordBits = 64;
constexpr uint64_t kDrawBits = 24;

Status nothing_left() {
  return failed_precondition("no token can be drawn: every token is masked, or its logit is -inf or NaN");
}

Result<std::span<const int32_t>> penalty_window(std::span<const int32_t> history, int32_t last_n,
                                                size_t vocab) {
  const size_t length = last_n < 0 ? history.size() : std::min(history.size(), static_cast<size_t>(last_n));
  const std::span<const int32_t> window = history.last(length);
  for (size_t i = 0; i < window.size(); ++i) {
    if (window[i] < 0 || static_cast<size_t>(window[i]) >= vocab) {
      return invalid_argument("history holds token " + std::to_string(window[i]) + " at position " +
                              std::to_string(history.size() - length + i) + "; the vocabulary has " +
                              std::to_string(vocab) + " tokens");
    }
  }
  return window;
}

// In pieces: for large ones the C library uses `rep movsb`, which some CPUs run ten times slower when the two
// addresses have an unlucky distance (75 us instead of 7 for 192 KiB, seen on Zen 3).
void copy(std::span<const float> from, std::vector<float>& to) {
  constexpr size_t kPiece = 256;
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); i += kPiece) {
    std::memcpy(to.data() + i, from.data() + i, std::min(kPiece, from.size() - i) * sizeof(float));
  }
}

void forbid(std::span<const uint64_t> allowed, std::span<float> logits) {
  for (size_t word = 0; word < allowed.size(); ++word) {
    const size_t begin = word * kWordBits;
    const size_t end = std::min(begin + kWordBits, logits.size());
    if (allowed[word] == 0) {
      std::fill(logits.begin() + begin, logits.begin() + end, kForbidden);
      continue;
    }
    for (size_t i = begin; i < end; ++i) {
      if (((allowed[word] >> (i - begin)) & 1) == 0) logits[i] = kForbidden;
    }
  }
}

uint64_t sum_from(std::span<const uint64_t> weights, uint64_t floor) {
  uint64_t sum = 0;
  for (uint64_t w : weights) sum += w >= floor ? w : 0;
  return sum;
}

// floor(sum * k / 2^24) for the 24-bit draw k = 2^24 * random_uniform: exact, and below sum.
uint64_t scaled_draw(uint64_t sum, float uniform) {
  constexpr uint64_t kOne = uint64_t{1} << kDrawBits;
  const uint64_t k = static_cast<uint64_t>(uniform * static_cast<float>(kOne));
  return (sum >> kDrawBits) * k + (((sum & (kOne - 1)) * k) >> kDrawBits);
}

// min_p as a weight: the largest token weighs kWholeWeight. Never 0, which is the weight of a forbidden
// token.
uint64_t floor_weight(float min_p) {
  const double floor = std::ceil(static_cast<double>(min_p) * static_cast<double>(kWholeWeight));
  return std::max<uint64_t>(1, static_cast<uint64_t>(floor));
}

Nucleus kept_tokens(std::span<const uint64_t> weights, float min_p, float top_p,
                    std::vector<RankedWeight>& scratch) {
  const uint64_t floor = floor_weight(min_p);
  const uint64_t total = sum_from(weights, floor);
  if (top_p >= 1.0f) return {floor, static_cast<int64_t>(weights.size()), total};
  const double goal = std::ceil(static_cast<double>(top_p) * static_cast<double>(total));
  return nucleus(weights, floor, total, std::clamp<uint64_t>(static_cast<uint64_t>(goal), 1, total), scratch);
}

// First index in [begin, end) at which the running sum of the weights >= floor exceeds target; end if none
// does.
size_t find_in_range(std::span<const uint64_t> weights, size_t begin, size_t end, uint64_t floor,
                     uint64_t target, uint64_t& running) {
  constexpr size_t kBlock = 64;
  for (size_t start = begin; start < end; start += kBlock) {
    const size_t stop = std::min(start + kBlock, end);
    const uint64_t sum = sum_from(weights.subspan(start, stop - start), floor);
    if (running + sum > target) {
      for (size_t i = start;; ++i) {
        running += weights[i] >= floor ? weights[i] : 0;
        if (running > target) return i;
      }
    }
    running += sum;
  }
  return end;
}

// Among tokens of the nucleus' last weight only those up to its index belong to it.
size_t find_drawn(std::span<const uint64_t> weights, const Nucleus& kept, uint64_t target) {
  uint64_t running = 0;
  const size_t split = std::min(static_cast<size_t>(kept.index) + 1, weights.size());
  const size_t found = find_in_range(weights, 0, split, kept.weight, target, running);
  return found < split ? found
                       : find_in_range(weights, split, weights.size(), kept.weight + 1, target, running);
}

}  // namespace

Result<int32_t> Sampler::sample(std::span<const float> logits, std::span<const int32_t> history,
                                int64_t position, std::span<const uint64_t> allowed) {
  DW_RETURN_IF_ERROR(validate(params_, static_cast<int64_t>(logits.size())));
  if (position < 0)
    return invalid_argument("position is " + std::to_string(position) + "; it must be 0 or more");
  DW_ASSIGN_OR_RETURN(const std::span<const float> adjusted, adjust(logits, history, allowed));
  if (params_.temperature > 0.0f) return draw(adjusted, position);
  const int64_t best = argmax(adjusted);
  if (best < 0) return nothing_left();
  return static_cast<int32_t>(best);
}

Result<std::span<const float>> Sampler::adjust(std::span<const float> logits,
                                               std::span<const int32_t> history,
                                               std::span<const uint64_t> allowed) {
  const size_t words = (logits.size() + kWordBits - 1) / kWordBits;
  if (!allowed.empty() && allowed.size() != words) {
    return invalid_argument("the mask has " + std::to_string(allowed.size()) + " words of 64 bits; " +
                            std::to_string(logits.size()) + " tokens need " + std::to_string(words));
  }
  const PenaltyParams penalties{params_.repetition_penalty, params_.presence_penalty,
                                params_.frequency_penalty};
  const bool penalise = penalties.active() && params_.penalty_last_n != 0 && !history.empty();
  if (params_.logit_bias.empty() && !penalise && allowed.empty()) return logits;

  copy(logits, adjusted_);
  for (const auto& [id, bias] : params_.logit_bias) adjusted_[id] += bias;
  if (penalise) {
    DW_ASSIGN_OR_RETURN(const std::span<const int32_t> window,
                        penalty_window(history, params_.penalty_last_n, logits.size()));
    penalties_.apply(penalties, window, adjusted_);
  }
  if (!allowed.empty()) forbid(allowed, adjusted_);
  return std::span<const float>(adjusted_);
}

Result<int32_t> Sampler::draw(std::span<const float> logits, int64_t position) {
  const bool cut = params_.top_k > 0 && static_cast<size_t>(params_.top_k) < logits.size();
  std::span<const float> values = logits;
  if (cut) {
    top_k(logits, params_.top_k, kept_);
    values_.resize(kept_.size());
    for (size_t i = 0; i < kept_.size(); ++i) values_[i] = kept_[i].value;
    values = values_;
  }
  const float max = largest(values);
  if (max == kForbidden) return nothing_left();
  weights_.resize(values.size());
  softmax_weights(values, max, params_.temperature, weights_);
  const Nucleus kept = kept_tokens(weights_, params_.min_p, params_.top_p, scratch_);

  const float uniform = random_uniform(params_.seed, params_.stream, static_cast<uint64_t>(position), 0);
  const uint64_t target = scaled_draw(kept.sum, uniform);
  const size_t drawn = find_drawn(weights_, kept, target);
  DW_CHECK(drawn < weights_.size(), "the weights of the kept tokens add up to their sum");
  return cut ? kept_[drawn].index : static_cast<int32_t>(drawn);
}

}  // namespace driftwood::sampler
