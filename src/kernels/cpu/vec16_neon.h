// Vec: 16 float lanes as four NEON registers. The meaning of every function is told in vec16_avx2.h.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "base/half.h"

#define DW_ISA neon

namespace driftwood::kernels::neon {
namespace {

inline constexpr int kQueryTile = 3;  // 3 * 8 accumulators + 3 + 1 registers of 32

struct Vec {
  float32x4_t a, b, c, d;
};
struct Lanes {
  uint32x4_t a, b, c, d;
};

using Reg = float32x4_t;
inline constexpr int kRegLanes = 4;
DW_ALWAYS_INLINE Reg reg_set(float x) { return vdupq_n_f32(x); }
DW_ALWAYS_INLINE Reg reg_load(const float* p) { return vld1q_f32(p); }
DW_ALWAYS_INLINE Reg reg_load(const uint16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
DW_ALWAYS_INLINE void reg_store(float* p, Reg r) { vst1q_f32(p, r); }
DW_ALWAYS_INLINE Reg reg_mul(Reg x, Reg y) { return vmulq_f32(x, y); }
DW_ALWAYS_INLINE Reg reg_fma(Reg x, Reg y, Reg z) { return vfmaq_f32(z, x, y); }  // z comes first here

DW_ALWAYS_INLINE Vec set(float x) {
  const Reg r = vdupq_n_f32(x);
  return {r, r, r, r};
}
DW_ALWAYS_INLINE Vec load(const float* p) {
  return {reg_load(p), reg_load(p + 4), reg_load(p + 8), reg_load(p + 12)};
}
DW_ALWAYS_INLINE Vec load(const uint16_t* p) {
  return {reg_load(p), reg_load(p + 4), reg_load(p + 8), reg_load(p + 12)};
}
DW_ALWAYS_INLINE void store(float* p, Vec x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
  vst1q_f32(p + 8, x.c);
  vst1q_f32(p + 12, x.d);
}
DW_ALWAYS_INLINE void store(uint16_t* p, Vec x) {
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x.a)));
  vst1_u16(p + 4, vreinterpret_u16_f16(vcvt_f16_f32(x.b)));
  vst1_u16(p + 8, vreinterpret_u16_f16(vcvt_f16_f32(x.c)));
  vst1_u16(p + 12, vreinterpret_u16_f16(vcvt_f16_f32(x.d)));
}

DW_ALWAYS_INLINE Lanes lanes_from_to(int begin, int end) {
  constexpr int32_t kIndex[4] = {0, 1, 2, 3};
  const int32x4_t index = vld1q_s32(kIndex);
  const auto inside = [&](int first) __attribute__((always_inline)) {
    return vandq_u32(vcgeq_s32(index, vdupq_n_s32(begin - first)),
                     vcltq_s32(index, vdupq_n_s32(end - first)));
  };
  return {inside(0), inside(4), inside(8), inside(12)};
}
DW_ALWAYS_INLINE Vec select(Lanes in, Vec x, Vec y) {
  return {vbslq_f32(in.a, x.a, y.a), vbslq_f32(in.b, x.b, y.b), vbslq_f32(in.c, x.c, y.c),
          vbslq_f32(in.d, x.d, y.d)};
}
// No masked loads here: a tail takes the way over the stack.
DW_ALWAYS_INLINE Vec load_first(const float* p, int n) {
  float lanes[16] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}
DW_ALWAYS_INLINE void store_first(float* p, Vec x, int n) {
  float lanes[16];
  store(lanes, x);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

DW_ALWAYS_INLINE Vec fma(Vec x, Vec y, Vec z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
          vfmaq_f32(z.d, x.d, y.d)};
}
DW_ALWAYS_INLINE Vec add(Vec x, Vec y) {
  return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c), vaddq_f32(x.d, y.d)};
}
DW_ALWAYS_INLINE Vec sub(Vec x, Vec y) {
  return {vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c), vsubq_f32(x.d, y.d)};
}
DW_ALWAYS_INLINE Vec mul(Vec x, Vec y) {
  return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c), vmulq_f32(x.d, y.d)};
}
DW_ALWAYS_INLINE Vec div(Vec x, Vec y) {
  return {vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c), vdivq_f32(x.d, y.d)};
}
DW_ALWAYS_INLINE Vec negate(Vec x) {
  return {vnegq_f32(x.a), vnegq_f32(x.b), vnegq_f32(x.c), vnegq_f32(x.d)};
}
DW_ALWAYS_INLINE Lanes less_than(Vec x, Vec y) {
  return {vcltq_f32(x.a, y.a), vcltq_f32(x.b, y.b), vcltq_f32(x.c, y.c), vcltq_f32(x.d, y.d)};
}
// By comparison: vmaxq would make a NaN win.
DW_ALWAYS_INLINE Vec greater(Vec x, Vec m) { return select(less_than(m, x), x, m); }

// p * 2^n for integer n by the exponent field. A NaN n counts as 0.
DW_ALWAYS_INLINE Reg scale_quarter(Reg p, Reg n) {
  const int32x4_t shift = vshlq_n_s32(vcvtq_s32_f32(n), 23);
  return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), shift));
}
DW_ALWAYS_INLINE Vec scale_by_power(Vec p, Vec n) {
  return {scale_quarter(p.a, n.a), scale_quarter(p.b, n.b), scale_quarter(p.c, n.c), scale_quarter(p.d, n.d)};
}

DW_ALWAYS_INLINE Vec swap_pairs(Vec x) {
  return {vrev64q_f32(x.a), vrev64q_f32(x.b), vrev64q_f32(x.c), vrev64q_f32(x.d)};
}
DW_ALWAYS_INLINE Vec load_doubled(const float* p) {
  const Reg low = vld1q_f32(p), high = vld1q_f32(p + 4);
  return {vzip1q_f32(low, low), vzip2q_f32(low, low), vzip1q_f32(high, high), vzip2q_f32(high, high)};
}
DW_ALWAYS_INLINE Vec negate_even(Vec x) {
  const uint32x4_t sign = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000));
  const auto flip = [&](Reg r) __attribute__((always_inline)) {
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(r), sign));
  };
  return {flip(x.a), flip(x.b), flip(x.c), flip(x.d)};
}

DW_ALWAYS_INLINE float sum_tree(Vec p) {
  const Reg four = vaddq_f32(vaddq_f32(p.a, p.c), vaddq_f32(p.b, p.d));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
DW_ALWAYS_INLINE float largest(Vec p) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(p.a, p.c), vmaxq_f32(p.b, p.d)));
}

}  // namespace
}  // namespace driftwood::kernels::neon
