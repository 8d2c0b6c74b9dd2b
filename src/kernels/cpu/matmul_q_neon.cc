// Quantised matmul for NEON with dot product: four rows in the lanes of a vector, four vectors for a row
// group.
//
// A dot product instruction adds the four s8 products of a lane in int32, exactly, so codes go in as they
// are: P8 is s8, and P4's 0..15 are as good. A quad (four inputs) of the activations is one lane of their
// vector. Panels hold s8 codes whatever the layout was, so all layouts share one panel tile.
#include <arm_neon.h>

#include "kernels/cpu/matmul_driver.h"
#include "kernels/cpu/matmul_neon.h"
#include "kernels/cpu/unroll.h"

namespace driftwood::kernels::neon {
namespace {

constexpr int kPrefetchBytes = 2048;  // ahead in the weight stream
constexpr int kQuads = kQuantBlock / 4;
constexpr int kQuadBytes = 4 * kRowGroup;

// Scales (index 0) or minima (index 1) of rows 4 * part .. 4 * part + 3 of a block record.
template <PackedLayout kLayout>
DW_ALWAYS_INLINE float32x4_t load_scales(const uint8_t* record, int index, int part) {
  const uint8_t* p = record + (four_bit(kLayout) ? 256 : 512);
  const int at = kRowGroup * index + 4 * part;
  if constexpr (half_scales(kLayout)) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p) + at)));
  } else {
    return vld1q_f32(reinterpret_cast<const float*>(p) + at);
  }
}

// The codes of one quad for rows 4 * part .. 4 * part + 3. Two quads share the bytes of four-bit codes.
template <bool kFour>
DW_ALWAYS_INLINE int8x16_t load_codes(const uint8_t* codes, int quad, int part) {
  if constexpr (kFour) {
    const uint8x16_t pair = vld1q_u8(codes + quad / 2 * kQuadBytes + 16 * part);
    return vreinterpretq_s8_u8(quad % 2 == 0 ? vandq_u8(pair, vdupq_n_u8(15)) : vshrq_n_u8(pair, 4));
  } else {
    return vreinterpretq_s8_u8(vld1q_u8(codes + quad * kQuadBytes + 16 * part));
  }
}

template <int kTokens>
using BlockSums = int32x4_t[kTokens][4];

// Adds quad 4 * half + kLane of a block; x holds the half's 16 activations of each token.
template <bool kFour, int kLane, int kTokens>
DW_ALWAYS_INLINE void add_quad(const uint8_t* codes, int half, const int8x16_t (&x)[kTokens],
                               BlockSums<kTokens>& sums) {
  int8x16_t w[4];
  DW_UNROLL(4)
  for (int part = 0; part < 4; ++part) w[part] = load_codes<kFour>(codes, 4 * half + kLane, part);
  DW_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) {
    DW_UNROLL(4)
    for (int part = 0; part < 4; ++part) {
      sums[t][part] = vdotq_laneq_s32(sums[t][part], w[part], x[t], kLane);
    }
  }
}

// Adds codes times activations of one block to the sums, in int32 lanes.
template <bool kFour, int kTokens>
DW_ALWAYS_INLINE void add_block(const uint8_t* codes, const int8_t* q, int64_t q_stride,
                                BlockSums<kTokens>& sums) {
  DW_UNROLL(2)
  for (int half = 0; half < 2; ++half) {
    int8x16_t x[kTokens];
    DW_UNROLL(8)
    for (int t = 0; t < kTokens; ++t) x[t] = vld1q_s8(q + t * q_stride + 16 * half);
    add_quad<kFour, 0>(codes, half, x, sums);
    add_quad<kFour, 1>(codes, half, x, sums);
    add_quad<kFour, 2>(codes, half, x, sums);
    add_quad<kFour, 3>(codes, half, x, sums);
  }
}

template <PackedLayout kLayout, bool kMin, bool kCorrected>
struct Tile {
  static constexpr bool kFour = four_bit(kLayout);
  using PanelTile = Tile<PackedLayout::kP8F, kMin, kCorrected>;
  static constexpr int kTokens = 4;  // 16 sums + 4 + 4 registers of 32; the accumulators take turns with them
  static constexpr int kDirectTokens = 4;
  static constexpr int kOffset = 0;
  static constexpr size_t kRecordBytes = block_record_bytes(kLayout, kMin);
  static constexpr int kCodeBytes = kQuantBlock * kRowGroup;  // of a panel's block

  static void unpack(const uint8_t* records, int blocks, WeightPanel& panel) {
    for (int b = 0; b < blocks; ++b) {
      const uint8_t* record = records + b * kRecordBytes;
      auto* codes = reinterpret_cast<int8_t*>(panel.codes + b * kCodeBytes);
      for (int part = 0; part < 4; ++part) {
        for (int quad = 0; quad < kQuads; ++quad) {
          vst1q_s8(codes + quad * kQuadBytes + 16 * part, load_codes<kFour>(record, quad, part));
        }
        vst1q_f32(panel.d[b] + 4 * part, load_scales<kLayout>(record, 0, part));
        if constexpr (kMin) vst1q_f32(panel.m[b] + 4 * part, load_scales<kLayout>(record, 1, part));
      }
    }
  }

  template <int kCount, bool kPanel>
  static void run(const TileWeights& weights, const TileInput& input, float* acc_out) {
    float32x4_t acc[kCount][4];
    DW_UNROLL(8)
    for (auto& row : acc) row[0] = row[1] = row[2] = row[3] = vdupq_n_f32(0.0f);
    const uint8_t* record = weights.records;
    const int8_t* q = input.q;
    for (int b = 0; b < weights.blocks; ++b, record += kPanel ? 0 : kRecordBytes, q += kQuantBlock) {
      if constexpr (!kPanel) prefetch(record);
      BlockSums<kCount> sums;
      DW_UNROLL(8)
      for (int t = 0; t < kCount; ++t) {
        const int32x4_t start = vdupq_n_s32(kCorrected ? input.correction[t][input.first + b] : 0);
        sums[t][0] = sums[t][1] = sums[t][2] = sums[t][3] = start;
      }
      add_block<kFour && !kPanel>(kPanel ? weights.panel->codes + b * kCodeBytes : record, q, input.q_stride,
                                  sums);
      DW_UNROLL(4)
      for (int part = 0; part < 4; ++part) {
        const float32x4_t d =
            kPanel ? vld1q_f32(weights.panel->d[b] + 4 * part) : load_scales<kLayout>(record, 0, part);
        float32x4_t m = vdupq_n_f32(0.0f);
        if constexpr (kMin) {
          m = kPanel ? vld1q_f32(weights.panel->m[b] + 4 * part) : load_scales<kLayout>(record, 1, part);
        }
        DW_UNROLL(8)
        for (int t = 0; t < kCount; ++t) {
          const float32x4_t scale = vmulq_n_f32(d, input.d[t][input.first + b]);
          acc[t][part] = vfmaq_f32(acc[t][part], vcvtq_f32_s32(sums[t][part]), scale);
          if constexpr (kMin) acc[t][part] = vfmaq_n_f32(acc[t][part], m, input.s[t][input.first + b]);
        }
      }
    }
    DW_UNROLL(8)
    for (int t = 0; t < kCount; ++t) {
      DW_UNROLL(4)
      for (int part = 0; part < 4; ++part) vst1q_f32(acc_out + t * kRowGroup + 4 * part, acc[t][part]);
    }
  }

 private:
  static DW_ALWAYS_INLINE void prefetch(const uint8_t* record) {
    for (size_t i = 0; i < kRecordBytes; i += 64) __builtin_prefetch(record + kPrefetchBytes + i);
  }
};

}  // namespace

void matmul_quantised(const MatmulArgs& args, int64_t begin, int64_t end) {
  matmul_any_layout<Tile>(args, begin, end);
}

}  // namespace driftwood::kernels::neon
