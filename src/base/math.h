// Portable elementary functions: fixed FMA polynomials, the same bits on every machine (docs/numerics.md).
//
// `exp_f32` and `sigmoid_f32` are the scalar definition that vector kernels follow operation by operation.
// The double functions serve tables that the host computes once (RoPE) and are never vectorised.
// No libm: std::fma and std::sqrt are correctly rounded by IEEE 754, so they are safe. Build with
// -ffp-contract=off. All inline functions are always_inline (see half.h).
#pragma once

#include <cmath>

#include "base/half.h"

namespace driftwood {

// e^x in f32. x < kExpLow gives +0, x > kExpHigh gives +inf, NaN gives NaN. Error below 1 ulp inside.
//   n = rint(x * log2(e)); r = fma(-n, ln2_hi, x); r = fma(-n, ln2_lo, r)
//   p = 1 + r (1 + r (c2 + r (c3 + r (c4 + r (c5 + r (c6 + r c7)))))), by Horner with FMA
//   result = p * 2^n by adding n to the exponent field; n is in [-126, 127] after the clamps.
// Coefficients: Cephes expf (S. Moshier), the classic minimax set for |r| <= ln(2)/2.
inline constexpr float kExpLow = -87.0f;
inline constexpr float kExpHigh = 88.0f;
inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kLn2Hi = 0.693359375f;
inline constexpr float kLn2Lo = -2.12194440e-4f;
inline constexpr float kExpC2 = 5.0000001201e-1f;
inline constexpr float kExpC3 = 1.6666665459e-1f;
inline constexpr float kExpC4 = 4.1665795894e-2f;
inline constexpr float kExpC5 = 8.3334519073e-3f;
inline constexpr float kExpC6 = 1.3981999507e-3f;
inline constexpr float kExpC7 = 1.9875691500e-4f;

// Round to nearest, ties to even, for |x| < 2^22, without libm: adding 1.5 * 2^23 drops the fraction.
DW_ALWAYS_INLINE float round_even_f32(float x) {
  constexpr float kMagic = 12582912.0f;
  const float shifted = x + kMagic;
  return shifted - kMagic;
}

DW_ALWAYS_INLINE float exp_f32(float x) {
  if (x < kExpLow) return 0.0f;
  if (x > kExpHigh) return f32_from_bits(0x7f800000u);
  if (x != x) return x;
  const float n = round_even_f32(x * kLog2E);
  float r = __builtin_fmaf(-n, kLn2Hi, x);
  r = __builtin_fmaf(-n, kLn2Lo, r);
  float p = kExpC7;
  p = __builtin_fmaf(p, r, kExpC6);
  p = __builtin_fmaf(p, r, kExpC5);
  p = __builtin_fmaf(p, r, kExpC4);
  p = __builtin_fmaf(p, r, kExpC3);
  p = __builtin_fmaf(p, r, kExpC2);
  p = __builtin_fmaf(p, r, 1.0f);
  p = __builtin_fmaf(p, r, 1.0f);
  return f32_from_bits(f32_bits(p) + (static_cast<uint32_t>(static_cast<int32_t>(n)) << 23));
}

// 1 / (1 + e^-x), with IEEE division.
DW_ALWAYS_INLINE float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

// silu(x) = x * sigmoid(x), one rounding for the product.
DW_ALWAYS_INLINE float silu_f32(float x) { return x * sigmoid_f32(x); }

// Double precision, |error| below 2 ulp, fixed operation order (math.cc). Domain: exp_f64 |x| <= 700;
// log_f64 x > 0 and normal; sin_cos_f64 |x| <= 2^30.
double exp_f64(double x);
double log_f64(double x);
double pow_f64(double base, double exponent);  // base > 0
void sin_cos_f64(double x, double* sine, double* cosine);

}  // namespace driftwood
