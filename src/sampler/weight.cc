#include "sampler/weight.h"

#include <bit>
#include <limits>

namespace driftwood::sampler {
namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;
// Adding it to |x| < 2^51 rounds x to the nearest whole number, ties to even, and leaves it in the low bits.
constexpr double kRound = 0x1.8p+52;
constexpr double kWhole = 0x1p+52;
constexpr double kLowest = -44.0;  // 2^-44 rounds to weight 0, as everything below does
constexpr uint64_t kFractionBits = 52;
constexpr uint64_t kScaleExponent = 40;

// ln(2)^k / k!, the Taylor coefficients of 2^f, rounded to double.
constexpr double kC1 = 0x1.62e42fefa39efp-1;
constexpr double kC2 = 0x1.ebfbdff82c58fp-3;
constexpr double kC3 = 0x1.c6b08d704a0c0p-5;
constexpr double kC4 = 0x1.3b2ab6fba4e77p-7;
constexpr double kC5 = 0x1.5d87fe78a6731p-10;
constexpr double kC6 = 0x1.430912f86c787p-13;
constexpr double kC7 = 0x1.ffcbfc588b0c7p-17;
constexpr double kC8 = 0x1.62c0223a5c824p-20;

// y <= 0, the logarithm to base 2 of the weight's share of the largest.
inline uint64_t weight_of(double y) {
  y = y > kLowest ? y : kLowest;  // NaN compares false
  const double shifted = y + kRound;
  const double f = y - (shifted - kRound);  // in [-1/2, 1/2], exact
  double p = kC8;
  p = p * f + kC7;
  p = p * f + kC6;
  p = p * f + kC5;
  p = p * f + kC4;
  p = p * f + kC3;
  p = p * f + kC2;
  p = p * f + kC1;
  p = p * f + 1.0;
  // The low 12 bits of `shifted` are the whole part; it goes into the exponent, with the scale of 2^40.
  const uint64_t exponent = (std::bit_cast<uint64_t>(shifted) + kScaleExponent) << kFractionBits;
  const double scaled = std::bit_cast<double>(std::bit_cast<uint64_t>(p) + exponent);
  return std::bit_cast<uint64_t>(scaled + kWhole) - std::bit_cast<uint64_t>(kWhole);
}

}  // namespace

void softmax_weights(std::span<const float> values, float max, float temperature,
                     std::span<uint64_t> weights) {
  const size_t count = values.size();
  const float* in = values.data();
  uint64_t* out = weights.data();
  if (max == std::numeric_limits<float>::infinity()) {
    for (size_t i = 0; i < count; ++i) out[i] = in[i] == max ? kWholeWeight : 0;
    return;
  }
  const double per_unit = kLog2E / static_cast<double>(temperature);
  const double top = static_cast<double>(max);
  for (size_t i = 0; i < count; ++i) out[i] = weight_of((static_cast<double>(in[i]) - top) * per_unit);
}

}  // namespace driftwood::sampler
