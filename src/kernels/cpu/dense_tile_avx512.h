// The dense tile of the AVX-512 objects: 16 outputs in one vector, one token a broadcast. See dense_driver.h.
#pragma once

// g++ 12's own AVX-512 header leaves an unused pass-through operand unset and then warns about it where
// inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include "kernels/cpu/dense_driver.h"
#include "kernels/cpu/unroll.h"

namespace driftwood::kernels::avx512 {
namespace {

constexpr int64_t kDensePrefetchBytes = 1024;  // ahead in each weight stream

// Sixteen weights at p, exactly.
template <PackedLayout kLayout>
DW_ALWAYS_INLINE __m512 load_weights(const uint8_t* p) {
  if constexpr (kLayout == PackedLayout::kF32) {
    return _mm512_loadu_ps(p);
  } else if constexpr (kLayout == PackedLayout::kF16) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  } else {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
}

template <PackedLayout kLayout>
struct DenseTile {
  static constexpr int kTokens = 8;
  static constexpr int64_t kElementBytes = static_cast<int64_t>(dense_element_bytes(kLayout));

  template <int kCount, int kGroups>
  static void run(const uint8_t* w, int64_t w_stride, int64_t group_stride, const float* x, int64_t x_stride,
                  int64_t inputs, float* acc_out) {
    __m512 acc[kGroups][kCount];
    DW_UNROLL(2)
    for (int g = 0; g < kGroups; ++g) {
      DW_UNROLL(8)
      for (int t = 0; t < kCount; ++t) acc[g][t] = _mm512_setzero_ps();
    }
    for (int64_t k = 0; k < inputs; ++k, w += w_stride) {
      DW_UNROLL(2)
      for (int g = 0; g < kGroups; ++g) {
        const uint8_t* p = w + g * group_stride;
        if constexpr (kGroups == 2)
          _mm_prefetch(reinterpret_cast<const char*>(p + kDensePrefetchBytes), _MM_HINT_T0);
        const __m512 weights = load_weights<kLayout>(p);
        DW_UNROLL(8)
        for (int t = 0; t < kCount; ++t) {
          acc[g][t] = _mm512_fmadd_ps(weights, _mm512_set1_ps(x[t * x_stride + k]), acc[g][t]);
        }
      }
    }
    DW_UNROLL(2)
    for (int g = 0; g < kGroups; ++g) {
      DW_UNROLL(8)
      for (int t = 0; t < kCount; ++t) _mm512_store_ps(acc_out + (g * kCount + t) * kRowGroup, acc[g][t]);
    }
  }
};

}  // namespace
}  // namespace driftwood::kernels::avx512
