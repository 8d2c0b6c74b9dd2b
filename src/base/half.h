// Scalar f16 and bf16 conversions, exact in both directions (round to nearest, ties to even).
//
// These are the definition: the vector conversions of every kernel must give the same bits for every finite
// and infinite value (NaNs stay NaN). All functions are always_inline so that no weak symbol of a file built
// for a wider instruction set can be picked by the linker.
#pragma once

#include <cstdint>
#include <cstring>

#define DW_ALWAYS_INLINE inline __attribute__((always_inline))

namespace driftwood {

DW_ALWAYS_INLINE uint32_t f32_bits(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
DW_ALWAYS_INLINE float f32_from_bits(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

DW_ALWAYS_INLINE float bf16_to_f32(uint16_t h) { return f32_from_bits(static_cast<uint32_t>(h) << 16); }

DW_ALWAYS_INLINE uint16_t f32_to_bf16(float x) {
  uint32_t u = f32_bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);  // quiet NaN
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

DW_ALWAYS_INLINE float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  const uint32_t fraction = h & 0x3ffu;
  if (exponent == 31) return f32_from_bits(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return f32_from_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
  // Zero or subnormal: fraction * 2^-24 is exact in f32.
  const float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-08f;
  return f32_from_bits(sign | f32_bits(magnitude));
}

DW_ALWAYS_INLINE uint16_t f32_to_f16(float x) {
  const uint32_t u = f32_bits(x);
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((a >> 13) & 0x1ffu));  // NaN
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);                        // overflow, inf
  if (a >= 0x38800000u) {                                                                    // normal
    const uint32_t r = a + 0xfffu + ((a >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((r - 0x38000000u) >> 13));
  }
  // Subnormal: adding 0.5 leaves round-to-nearest-even(|x| * 2^24) in the low mantissa bits.
  const uint32_t r = f32_bits(f32_from_bits(a) + 0.5f) - 0x3f000000u;
  return static_cast<uint16_t>(sign | r);
}

}  // namespace driftwood
