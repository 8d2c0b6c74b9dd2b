// Softmax weights as whole numbers: round(2^40 * e^((x - max) / temperature)).
//
// Whole numbers because their sums are exact: no rule about the order of addition is needed, so a scalar
// loop, a vector loop and a device agree on every bit, and a sum may be split or reused at will. The largest
// logit weighs exactly 2^40; what is below 2^-41 of it weighs 0. A vocabulary of up to 2^23 tokens cannot
// overflow the sum.
//
// Numerics (docs/sampling.md): double precision, multiplications and additions only (no FMA, so that every
// machine vectorises it), relative error below 3e-10. NaN and -inf weigh 0; if the maximum is +inf, +inf
// weighs 2^40 and everything else 0.
#pragma once

#include <cstdint>
#include <span>

namespace driftwood::sampler {

inline constexpr uint64_t kWholeWeight = uint64_t{1} << 40;
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 23;

// weights[i] for values[i]. Preconditions: same sizes; max is the largest value and not -inf; temperature >
// 0.
void softmax_weights(std::span<const float> values, float max, float temperature,
                     std::span<uint64_t> weights);

}  // namespace driftwood::sampler
