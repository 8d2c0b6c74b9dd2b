// One block of 32 activations to int8 with 256-bit vectors, for the instruction sets that have AVX2.
//
// Numerics: docs/numerics.md, "Quantising activations". Maxima are exact in any order; max(|x|, m) returns m
// when x is a NaN, so a NaN never wins; cvtps gives INT_MIN for NaN and the saturating packs and the last max
// turn that into -127. Everything is static and inlined: a file built for a wider instruction set must not
// leave a symbol that the linker could pick for another one.
#pragma once

#include <immintrin.h>

#include "base/half.h"
#include "tensor/op_args.h"

namespace driftwood::kernels {

static DW_ALWAYS_INLINE float largest_magnitude(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 m = _mm256_setzero_ps();
  m = _mm256_max_ps(_mm256_andnot_ps(sign, a), m);
  m = _mm256_max_ps(_mm256_andnot_ps(sign, b), m);
  m = _mm256_max_ps(_mm256_andnot_ps(sign, c), m);
  m = _mm256_max_ps(_mm256_andnot_ps(sign, d), m);
  __m128 n = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
  n = _mm_max_ps(n, _mm_movehl_ps(n, n));
  n = _mm_max_ss(n, _mm_movehdup_ps(n));
  return _mm_cvtss_f32(n);
}

// Sum of 32 int8.
static DW_ALWAYS_INLINE int32_t sum_of_codes(__m256i q) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  const __m256i quads = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(quads), _mm256_extracti128_si256(quads, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

static DW_ALWAYS_INLINE __m256i scaled_codes(__m256 x, __m256 inverse) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(x, inverse));
}

// 32 values at x into q; the block's d, s and isum.
static DW_ALWAYS_INLINE void quantise_block(const float* x, int8_t* q, float* d, float* s, int32_t* isum) {
  const __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + 8);
  const __m256 c = _mm256_loadu_ps(x + 16), e = _mm256_loadu_ps(x + 24);
  const float amax = largest_magnitude(a, b, c, e);
  if (amax < 1e-30f) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm256_setzero_si256());
    *d = 0.0f;
    *s = 0.0f;
    *isum = 0;
    return;
  }
  const float scale = amax / 127.0f;
  const __m256 inverse = _mm256_set1_ps(127.0f / amax);
  // The packs work in 128-bit halves; the permutation puts the groups of four back in order.
  const __m256i ab = _mm256_packs_epi32(scaled_codes(a, inverse), scaled_codes(b, inverse));
  const __m256i ce = _mm256_packs_epi32(scaled_codes(c, inverse), scaled_codes(e, inverse));
  __m256i codes = _mm256_packs_epi16(ab, ce);
  codes = _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  codes = _mm256_max_epi8(codes, _mm256_set1_epi8(-127));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), codes);
  const int32_t sum = sum_of_codes(codes);
  *d = scale;
  *s = scale * static_cast<float>(sum);
  *isum = sum;
}

static DW_ALWAYS_INLINE void quantise_blocks(const float* x, int64_t width, const ActivationsQ8& row) {
  for (int64_t b = 0; b < width / kQuantBlock; ++b) {
    quantise_block(x + b * kQuantBlock, row.q + b * kQuantBlock, row.d + b, row.s + b, row.isum + b);
  }
}

static DW_ALWAYS_INLINE void quantise_rows(const QuantiseArgs& args, int64_t begin, int64_t end) {
  const int64_t blocks = args.width / kQuantBlock;
  for (int64_t t = begin; t < end; ++t) {
    const ActivationsQ8 row{args.q8.q + t * args.width, args.q8.d + t * blocks, args.q8.s + t * blocks,
                            args.q8.isum + t * blocks};
    quantise_blocks(args.x + t * args.width, args.width, row);
  }
}

}  // namespace driftwood::kernels
