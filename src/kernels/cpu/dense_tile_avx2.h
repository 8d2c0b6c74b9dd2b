// The dense tile of the AVX2 objects: 16 outputs in two vectors, one token a broadcast. See dense_driver.h.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/dense_driver.h"
#include "kernels/cpu/unroll.h"

namespace driftwood::kernels::avx2 {
namespace {

constexpr int64_t kDensePrefetchBytes = 1024;  // ahead in each weight stream

// Eight weights at p, exactly.
template <PackedLayout kLayout>
DW_ALWAYS_INLINE __m256 load_weights(const uint8_t* p) {
  if constexpr (kLayout == PackedLayout::kF32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  } else if constexpr (kLayout == PackedLayout::kF16) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  } else {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
}

template <PackedLayout kLayout>
struct DenseTile {
  static constexpr int kTokens = 6;
  static constexpr int64_t kElementBytes = static_cast<int64_t>(dense_element_bytes(kLayout));

  template <int kCount, int kGroups>
  static void run(const uint8_t* w, int64_t w_stride, int64_t group_stride, const float* x, int64_t x_stride,
                  int64_t inputs, float* acc_out) {
    __m256 acc[kGroups][kCount][2];
    DW_UNROLL(2)
    for (int g = 0; g < kGroups; ++g) {
      DW_UNROLL(8)
      for (int t = 0; t < kCount; ++t) acc[g][t][0] = acc[g][t][1] = _mm256_setzero_ps();
    }
    for (int64_t k = 0; k < inputs; ++k, w += w_stride) {
      DW_UNROLL(2)
      for (int g = 0; g < kGroups; ++g) {
        const uint8_t* p = w + g * group_stride;
        if constexpr (kGroups == 2)
          _mm_prefetch(reinterpret_cast<const char*>(p + kDensePrefetchBytes), _MM_HINT_T0);
        const __m256 low = load_weights<kLayout>(p), high = load_weights<kLayout>(p + 8 * kElementBytes);
        DW_UNROLL(8)
        for (int t = 0; t < kCount; ++t) {
          const __m256 v = _mm256_broadcast_ss(x + t * x_stride + k);
          acc[g][t][0] = _mm256_fmadd_ps(low, v, acc[g][t][0]);
          acc[g][t][1] = _mm256_fmadd_ps(high, v, acc[g][t][1]);
        }
      }
    }
    DW_UNROLL(2)
    for (int g = 0; g < kGroups; ++g) {
      DW_UNROLL(8)
      for (int t = 0; t < kCount; ++t) {
        _mm256_store_ps(acc_out + (g * kCount + t) * kRowGroup, acc[g][t][0]);
        _mm256_store_ps(acc_out + (g * kCount + t) * kRowGroup + 8, acc[g][t][1]);
      }
    }
  }
};

}  // namespace
}  // namespace driftwood::kernels::avx2
