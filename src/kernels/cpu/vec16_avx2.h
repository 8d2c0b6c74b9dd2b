// Vec: 16 float lanes, here as two AVX2 registers. The only file the wide operations need per instruction
// set; see vec16_math.h for what is built on it. Everything is internal to the including file and always
// inlined.
//
// A new instruction set gives the same functions with the same meaning:
//   fma(a, b, c) rounds once; greater(x, m) is x > m ? x : m in each lane (a NaN x never wins);
//   load_first/store_first touch only the first n lanes, 0 <= n <= 16, the others read as 0;
//   Lanes is a set of lanes; select(lanes, a, b) takes a where the lane is in the set;
//   conversions from and to f16 are those of base/half.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/half.h"

#define DW_ISA avx2

namespace driftwood::kernels::avx2 {
namespace {

inline constexpr int kQueryTile =
    3;  // queries that share a load of K or V: 3 * 4 accumulators + 3 + 1 registers of 16

struct Vec {
  __m256 lo, hi;
};
struct Lanes {
  __m256 lo, hi;
};

// One machine register, for the inner products that count registers.
using Reg = __m256;
inline constexpr int kRegLanes = 8;
DW_ALWAYS_INLINE Reg reg_set(float x) { return _mm256_set1_ps(x); }
DW_ALWAYS_INLINE Reg reg_load(const float* p) { return _mm256_loadu_ps(p); }
DW_ALWAYS_INLINE Reg reg_load(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
DW_ALWAYS_INLINE void reg_store(float* p, Reg r) { _mm256_storeu_ps(p, r); }
DW_ALWAYS_INLINE Reg reg_mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
DW_ALWAYS_INLINE Reg reg_fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }

DW_ALWAYS_INLINE Vec set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
DW_ALWAYS_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
DW_ALWAYS_INLINE void store(float* p, Vec v) {
  _mm256_storeu_ps(p, v.lo);
  _mm256_storeu_ps(p + 8, v.hi);
}
DW_ALWAYS_INLINE Vec load(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
DW_ALWAYS_INLINE void store(uint16_t* p, Vec v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(v.hi, _MM_FROUND_TO_NEAREST_INT));
}

DW_ALWAYS_INLINE Lanes lanes_from_to(int begin, int end) {
  const __m256i lo = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i hi = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
  const __m256i b = _mm256_set1_epi32(begin - 1);
  const __m256i e = _mm256_set1_epi32(end);
  return {_mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(lo, b), _mm256_cmpgt_epi32(e, lo))),
          _mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(hi, b), _mm256_cmpgt_epi32(e, hi)))};
}
DW_ALWAYS_INLINE Vec select(Lanes lanes, Vec a, Vec b) {
  return {_mm256_blendv_ps(b.lo, a.lo, lanes.lo), _mm256_blendv_ps(b.hi, a.hi, lanes.hi)};
}
DW_ALWAYS_INLINE Vec load_first(const float* p, int n) {
  const Lanes in = lanes_from_to(0, n);
  return {_mm256_maskload_ps(p, _mm256_castps_si256(in.lo)),
          _mm256_maskload_ps(p + 8, _mm256_castps_si256(in.hi))};
}
DW_ALWAYS_INLINE void store_first(float* p, Vec v, int n) {
  const Lanes in = lanes_from_to(0, n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(in.lo), v.lo);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(in.hi), v.hi);
}

DW_ALWAYS_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
DW_ALWAYS_INLINE Vec add(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
DW_ALWAYS_INLINE Vec sub(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
DW_ALWAYS_INLINE Vec mul(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
DW_ALWAYS_INLINE Vec div(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
DW_ALWAYS_INLINE Vec greater(Vec x, Vec m) { return {_mm256_max_ps(x.lo, m.lo), _mm256_max_ps(x.hi, m.hi)}; }
DW_ALWAYS_INLINE Vec negate(Vec x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(x.lo, sign), _mm256_xor_ps(x.hi, sign)};
}
DW_ALWAYS_INLINE Lanes less_than(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
// p * 2^n for integer n by the exponent field.
DW_ALWAYS_INLINE __m256 scale_half(__m256 p, __m256 n) {
  const __m256i shift = _mm256_slli_epi32(_mm256_cvttps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), shift));
}
DW_ALWAYS_INLINE Vec scale_by_power(Vec p, Vec n) { return {scale_half(p.lo, n.lo), scale_half(p.hi, n.hi)}; }

// Lanes 2i and 2i + 1 exchanged.
DW_ALWAYS_INLINE Vec swap_pairs(Vec x) {
  return {_mm256_permute_ps(x.lo, 0xb1), _mm256_permute_ps(x.hi, 0xb1)};
}
// Eight values, each in two neighbouring lanes.
DW_ALWAYS_INLINE Vec load_doubled(const float* p) {
  const __m256 x = _mm256_loadu_ps(p);
  return {_mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
          _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
}
DW_ALWAYS_INLINE Vec negate_even(Vec x) {
  const __m256 sign = _mm256_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f);
  return {_mm256_xor_ps(x.lo, sign), _mm256_xor_ps(x.hi, sign)};
}

// The fixed tree of docs/numerics.md.
DW_ALWAYS_INLINE float sum_tree(Vec p) {
  const __m256 eight = _mm256_add_ps(p.lo, p.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
// Largest lane; lanes must not hold NaN.
DW_ALWAYS_INLINE float largest(Vec p) {
  const __m256 eight = _mm256_max_ps(p.lo, p.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace
}  // namespace driftwood::kernels::avx2
