// Vec: 16 float lanes as one AVX-512 register. The meaning of every function is told in vec16_avx2.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/half.h"

#define DW_ISA avx512

namespace driftwood::kernels::avx512 {
namespace {

inline constexpr int kQueryTile = 8;  // 8 * 2 accumulators + 8 + 1 registers of 32

struct Vec {
  __m512 v;
};
struct Lanes {
  __mmask16 m;
};

using Reg = __m512;
inline constexpr int kRegLanes = 16;
DW_ALWAYS_INLINE Reg reg_set(float x) { return _mm512_set1_ps(x); }
DW_ALWAYS_INLINE Reg reg_load(const float* p) { return _mm512_loadu_ps(p); }
DW_ALWAYS_INLINE Reg reg_load(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
DW_ALWAYS_INLINE void reg_store(float* p, Reg r) { _mm512_storeu_ps(p, r); }
DW_ALWAYS_INLINE Reg reg_mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
DW_ALWAYS_INLINE Reg reg_fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }

DW_ALWAYS_INLINE Vec set(float x) { return {_mm512_set1_ps(x)}; }
DW_ALWAYS_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
DW_ALWAYS_INLINE void store(float* p, Vec v) { _mm512_storeu_ps(p, v.v); }
DW_ALWAYS_INLINE Vec load(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
DW_ALWAYS_INLINE void store(uint16_t* p, Vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v.v, _MM_FROUND_TO_NEAREST_INT));
}

DW_ALWAYS_INLINE Lanes lanes_from_to(int begin, int end) {
  return {static_cast<__mmask16>(((1u << end) - 1u) & ~((1u << begin) - 1u))};
}
DW_ALWAYS_INLINE Vec select(Lanes lanes, Vec a, Vec b) { return {_mm512_mask_blend_ps(lanes.m, b.v, a.v)}; }
DW_ALWAYS_INLINE Vec load_first(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(lanes_from_to(0, n).m, p)};
}
DW_ALWAYS_INLINE void store_first(float* p, Vec v, int n) {
  _mm512_mask_storeu_ps(p, lanes_from_to(0, n).m, v.v);
}

DW_ALWAYS_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
DW_ALWAYS_INLINE Vec add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
DW_ALWAYS_INLINE Vec sub(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
DW_ALWAYS_INLINE Vec mul(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
DW_ALWAYS_INLINE Vec div(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
DW_ALWAYS_INLINE Vec greater(Vec x, Vec m) { return {_mm512_max_ps(x.v, m.v)}; }
DW_ALWAYS_INLINE Vec negate(Vec x) { return {_mm512_xor_ps(x.v, _mm512_set1_ps(-0.0f))}; }
DW_ALWAYS_INLINE Lanes less_than(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
DW_ALWAYS_INLINE Vec scale_by_power(Vec p, Vec n) {
  const __m512i shift = _mm512_slli_epi32(_mm512_cvttps_epi32(n.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p.v), shift))};
}

DW_ALWAYS_INLINE Vec swap_pairs(Vec x) { return {_mm512_permute_ps(x.v, 0xb1)}; }
DW_ALWAYS_INLINE Vec load_doubled(const float* p) {
  const __m512i index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return {_mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)))};
}
DW_ALWAYS_INLINE Vec negate_even(Vec x) {
  const __m512 sign = _mm512_castsi512_ps(_mm512_set1_epi64(0x80000000));
  return {_mm512_xor_ps(x.v, sign)};
}

DW_ALWAYS_INLINE float sum_tree(Vec p) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(p.v), _mm512_extractf32x8_ps(p.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
DW_ALWAYS_INLINE float largest(Vec p) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(p.v), _mm512_extractf32x8_ps(p.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace
}  // namespace driftwood::kernels::avx512
