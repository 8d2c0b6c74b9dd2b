// Activation quantising for NEON. Numerics: docs/numerics.md, "Quantising activations".
//
// The clamp at -127 stands before the rounding, which changes nothing for a number (-127 is an integer) and
// makes a NaN -127; the one at 127 is the saturation of the last narrowing.
#include <arm_neon.h>

#include "base/half.h"
#include "kernels/cpu/matmul_kernels.h"
#include "kernels/cpu/unroll.h"

namespace driftwood::kernels::neon {
namespace {

// x > m ? x : m, so that a NaN x never wins.
DW_ALWAYS_INLINE float32x4_t greater(float32x4_t x, float32x4_t m) {
  return vbslq_f32(vcgtq_f32(x, m), x, m);
}

// Four scaled values to the integers they become.
DW_ALWAYS_INLINE int32x4_t scaled_codes(float32x4_t x, float inverse) {
  return vcvtnq_s32_f32(greater(vmulq_n_f32(x, inverse), vdupq_n_f32(-127.0f)));
}

// Sixteen values, at x, to codes.
DW_ALWAYS_INLINE int8x16_t codes_of(const float32x4_t* x, float inverse) {
  const int16x8_t low =
      vcombine_s16(vqmovn_s32(scaled_codes(x[0], inverse)), vqmovn_s32(scaled_codes(x[1], inverse)));
  const int16x8_t high =
      vcombine_s16(vqmovn_s32(scaled_codes(x[2], inverse)), vqmovn_s32(scaled_codes(x[3], inverse)));
  return vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
}

// 32 values at x into q; the block's d, s and isum.
DW_ALWAYS_INLINE void quantise_block(const float* x, int8_t* q, float* d, float* s, int32_t* isum) {
  float32x4_t values[8];
  float32x4_t m = vdupq_n_f32(0.0f);
  DW_UNROLL(8)
  for (int i = 0; i < 8; ++i) {
    values[i] = vld1q_f32(x + 4 * i);
    m = greater(vabsq_f32(values[i]), m);
  }
  const float amax = vmaxvq_f32(m);
  if (amax < 1e-30f) {
    vst1q_s8(q, vdupq_n_s8(0));
    vst1q_s8(q + 16, vdupq_n_s8(0));
    *d = 0.0f;
    *s = 0.0f;
    *isum = 0;
    return;
  }
  const float scale = amax / 127.0f;
  const float inverse = 127.0f / amax;
  const int8x16_t low = codes_of(values, inverse), high = codes_of(values + 4, inverse);
  vst1q_s8(q, low);
  vst1q_s8(q + 16, high);
  const int8x16_t ones = vdupq_n_s8(1);
  const int32_t sum = vaddvq_s32(vdotq_s32(vdotq_s32(vdupq_n_s32(0), low, ones), high, ones));
  *d = scale;
  *s = scale * static_cast<float>(sum);
  *isum = sum;
}

}  // namespace

void quantise_row(const float* x, int64_t width, const ActivationsQ8& row) {
  for (int64_t b = 0; b < width / kQuantBlock; ++b) {
    quantise_block(x + b * kQuantBlock, row.q + b * kQuantBlock, row.d + b, row.s + b, row.isum + b);
  }
}

void quantise(const QuantiseArgs& args, int64_t begin, int64_t end) {
  const int64_t blocks = args.width / kQuantBlock;
  for (int64_t t = begin; t < end; ++t) {
    quantise_row(args.x + t * args.width, args.width,
                 {args.q8.q + t * args.width, args.q8.d + t * blocks, args.q8.s + t * blocks,
                  args.q8.isum + t * blocks});
  }
}

}  // namespace driftwood::kernels::neon
