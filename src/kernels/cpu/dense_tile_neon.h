// The dense tile of the NEON objects: 16 outputs in four vectors, one token a scalar. See dense_driver.h.
#pragma once

#include <arm_neon.h>

#include "kernels/cpu/dense_driver.h"
#include "kernels/cpu/unroll.h"

namespace driftwood::kernels::neon {
namespace {

constexpr int64_t kDensePrefetchBytes = 1024;  // ahead in each weight stream

// Four weights at p, exactly.
template <PackedLayout kLayout>
DW_ALWAYS_INLINE float32x4_t load_weights(const uint8_t* p) {
  if constexpr (kLayout == PackedLayout::kF32) {
    return vld1q_f32(reinterpret_cast<const float*>(p));
  } else {
    const uint16x4_t half = vld1_u16(reinterpret_cast<const uint16_t*>(p));
    if constexpr (kLayout == PackedLayout::kF16) return vcvt_f32_f16(vreinterpret_f16_u16(half));
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(half), 16));
  }
}

template <PackedLayout kLayout>
struct DenseTile {
  static constexpr int kTokens = 6;  // 24 accumulators + 4 + 1 registers of 32
  static constexpr int64_t kElementBytes = static_cast<int64_t>(dense_element_bytes(kLayout));

  template <int kCount, int kGroups>
  static void run(const uint8_t* w, int64_t w_stride, int64_t group_stride, const float* x, int64_t x_stride,
                  int64_t inputs, float* acc_out) {
    float32x4_t acc[kGroups * kCount][4];
    DW_UNROLL(8)
    for (auto& row : acc) row[0] = row[1] = row[2] = row[3] = vdupq_n_f32(0.0f);
    for (int64_t k = 0; k < inputs; ++k, w += w_stride) {
      DW_UNROLL(2)
      for (int g = 0; g < kGroups; ++g) {
        const uint8_t* p = w + g * group_stride;
        if constexpr (kGroups == 2) __builtin_prefetch(p + kDensePrefetchBytes);
        float32x4_t weights[4];
        DW_UNROLL(4)
        for (int i = 0; i < 4; ++i) weights[i] = load_weights<kLayout>(p + 4 * i * kElementBytes);
        DW_UNROLL(8)
        for (int t = 0; t < kCount; ++t) {
          float32x4_t(&row)[4] = acc[g * kCount + t];
          const float value = x[t * x_stride + k];
          DW_UNROLL(4)
          for (int i = 0; i < 4; ++i) row[i] = vfmaq_n_f32(row[i], weights[i], value);
        }
      }
    }
    DW_UNROLL(8)
    for (int r = 0; r < kGroups * kCount; ++r) {
      DW_UNROLL(4)
      for (int i = 0; i < 4; ++i) vst1q_f32(acc_out + r * kRowGroup + 4 * i, acc[r][i]);
    }
  }
};

}  // namespace
}  // namespace driftwood::kernels::neon
