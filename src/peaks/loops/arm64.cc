// arm64, whose baseline has all of this but the dot product.
#include <arm_neon.h>

#include "peaks/loops.h"
#include "peaks/loops/mac_loop.h"

#define DW_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))

namespace driftwood::peaks {
namespace {

uint64_t read(const uint8_t* from, size_t bytes) {
  uint64x2_t sums[4] = {};
  for (size_t at = 0; at < bytes; at += kReadStep) {
    const auto* words = reinterpret_cast<const uint64_t*>(from + at);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i % 4 == 0) __builtin_prefetch(from + at + 16 * i + kReadAhead);
      sums[i % 4] = vaddq_u64(sums[i % 4], vld1q_u64(words + 2 * i));
    }
  }
  return vaddvq_u64(vaddq_u64(vaddq_u64(sums[0], sums[1]), vaddq_u64(sums[2], sums[3])));
}

DW_DOTPROD int64_t int8(int64_t rounds) {
  int8x16_t a = vdupq_n_s8(1);
  const int8x16_t b = vdupq_n_s8(1);
#define DW_STEP(sum) vdotq_s32(sum, a, b)
  DW_MAC_LOOP(int32x4_t, DW_STEP, rounds);
#undef DW_STEP
  int64_t total = 0;
  for (const int32x4_t& sum : sums) total += vaddlvq_s32(sum);
  return total;
}

int64_t f32(int64_t rounds) {
  float32x4_t a = vdupq_n_f32(1);
  const float32x4_t b = vdupq_n_f32(1);
#define DW_STEP(sum) vfmaq_f32(sum, a, b)
  DW_MAC_LOOP(float32x4_t, DW_STEP, rounds);
#undef DW_STEP
  int64_t total = 0;
  for (const float32x4_t& sum : sums) {
    float lanes[4];
    vst1q_f32(lanes, sum);
    for (const float lane : lanes) total += static_cast<int64_t>(lane);
  }
  return total;
}

constexpr const char* kFeatures[] = {"asimd", "asimddp"};

}  // namespace

std::span<const Loops> built_loops() {
  static const Loops kLoops[] = {
      {"neon", kFeatures, read, {"sdot", kChains * 16, int8}, {"fmla", kChains * 4, f32}},
      portable_loops(),
  };
  return kLoops;
}

}  // namespace driftwood::peaks
