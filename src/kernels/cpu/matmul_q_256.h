// The quantised tile in 256-bit vectors, shared by AVX2 and AVX-VNNI: eight rows in the lanes of a vector,
// two vectors for a row group. What differs, the products of a block, is the class Products:
//   kTokens8                most tokens of a P8 tile (of a P4 tile: 6)
//   kOffset8                what it adds to a signed code (kOffset in matmul_driver.h)
//   p4<tokens, panel>(codes, q, q_stride, sums)              codes: the record's or the panel's
//   p8<tokens, panel>(codes, magnitudes, q, q_stride, sums)  magnitudes: the panel's, null without one
//   unpack_p8(w, codes, magnitudes)                          32 codes of a record to the panel
//
// Accumulators of more than two tokens live in L1, not in registers: sixteen registers hold the integer sums.
// Up to three tiles of tokens go straight from the stream: while weights come from memory that hides more of
// the waiting than a panel does, and unpacking three times costs about as much as a panel.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/matmul_driver.h"
#include "kernels/cpu/unroll.h"

namespace driftwood::kernels {

inline constexpr int kPrefetchBytes256 = 2048;  // ahead in the weight stream

static DW_ALWAYS_INLINE __m256i load_256(const uint8_t* p) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
}
static DW_ALWAYS_INLINE void store_256(uint8_t* p, __m256i v) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(p), v);
}

static DW_ALWAYS_INLINE __m256i broadcast4_256(const int8_t* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}

// Scales (index 0) or minima (index 1) of rows 8 * half .. 8 * half + 7 of a block record.
template <PackedLayout kLayout>
static DW_ALWAYS_INLINE __m256 load_scales_256(const uint8_t* record, int index, int half) {
  const uint8_t* p = record + (four_bit(kLayout) ? 256 : 512);
  if constexpr (half_scales(kLayout)) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p + 32 * index + 16 * half)));
  } else {
    return _mm256_load_ps(reinterpret_cast<const float*>(p + 64 * index + 32 * half));
  }
}

// Keeps an integer sum where it is: compilers like to regroup integer additions, do all products first and
// spill.
static DW_ALWAYS_INLINE void pin(__m256i& sum) { asm("" : "+x"(sum)); }

// Of one block, [tokens][halves], in int32 lanes.
template <int kTokens>
using BlockSums = __m256i[kTokens][2];

// The block's quads 2 * pair and 2 * pair + 1 of u4 codes: w[quad][half].
template <bool kPanel>
static DW_ALWAYS_INLINE void load_quads_p4(const uint8_t* codes, int pair, __m256i (&w)[2][2]) {
  if constexpr (kPanel) {
    for (int i = 0; i < 4; ++i) w[i >> 1][i & 1] = load_256(codes + 128 * pair + 32 * i);
  } else {
    const __m256i low = _mm256_set1_epi8(15);
    for (int half = 0; half < 2; ++half) {
      const __m256i both = load_256(codes + 64 * pair + 32 * half);
      w[0][half] = _mm256_and_si256(both, low);
      w[1][half] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
    }
  }
}

template <class Products, PackedLayout kLayout, bool kMin, bool kCorrected>
struct QuantisedTile256 {
  static constexpr bool kFour = four_bit(kLayout);
  using PanelTile =
      QuantisedTile256<Products, kFour ? PackedLayout::kP4H : PackedLayout::kP8H, kMin, kCorrected>;
  static constexpr int kTokens = kFour ? 6 : Products::kTokens8;
  static constexpr int kDirectTokens = 12;
  static constexpr int kOffset = kFour ? 0 : Products::kOffset8;
  static constexpr size_t kRecordBytes = block_record_bytes(kLayout, kMin);
  static constexpr int kCodeBytes = kSegment * kRowGroup / kSegmentBlocks;  // of a panel's block

  static void unpack(const uint8_t* records, int blocks, WeightPanel& panel) {
    const __m256i low = _mm256_set1_epi8(15);
    for (int b = 0; b < blocks; ++b) {
      const uint8_t* record = records + b * kRecordBytes;
      uint8_t* codes = panel.codes + b * kCodeBytes;
      if constexpr (kFour) {  // [j][quad][half][8 rows][4]
        for (int i = 0; i < 8; ++i) {
          const __m256i pair = load_256(record + 32 * i);
          uint8_t* to = codes + 128 * (i >> 1) + 32 * (i & 1);
          store_256(to, _mm256_and_si256(pair, low));
          store_256(to + 64, _mm256_and_si256(_mm256_srli_epi16(pair, 4), low));
        }
      } else {
        for (int i = 0; i < 16; ++i) {
          Products::unpack_p8(load_256(record + 32 * i), codes + 32 * i,
                              panel.magnitudes + b * kCodeBytes + 32 * i);
        }
      }
      for (int half = 0; half < 2; ++half) {
        _mm256_store_ps(panel.d[b] + 8 * half, load_scales_256<kLayout>(record, 0, half));
        if constexpr (kMin) _mm256_store_ps(panel.m[b] + 8 * half, load_scales_256<kLayout>(record, 1, half));
      }
    }
  }

  template <int kCount, bool kPanel>
  static void run(const TileWeights& weights, const TileInput& input, float* __restrict acc_out) {
    constexpr bool kInRegisters = kCount <= 2;
    __m256 acc[kCount][2];
    DW_UNROLL(16)
    for (int i = 0; i < 2 * kCount; ++i) {
      if (kInRegisters) acc[i / 2][i % 2] = _mm256_setzero_ps();
      if (!kInRegisters) _mm256_store_ps(acc_out + 8 * i, _mm256_setzero_ps());
    }
    const uint8_t* record = weights.records;
    const int8_t* q = input.q;
    const int64_t q_stride = input.q_stride;
    for (int b = 0; b < weights.blocks; ++b, record += kPanel ? 0 : kRecordBytes, q += kQuantBlock) {
      if constexpr (!kPanel) prefetch(record);
      const uint8_t* codes = kPanel ? weights.panel->codes + b * kCodeBytes : record;
      BlockSums<kCount> sums;
      if constexpr (kFour) {
        Products::template p4<kCount, kPanel>(codes, q, q_stride, sums);
      } else {
        const uint8_t* magnitudes = kPanel ? weights.panel->magnitudes + b * kCodeBytes : nullptr;
        Products::template p8<kCount, kPanel>(codes, magnitudes, q, q_stride, sums);
      }
      DW_UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        const __m256 d = kPanel ? _mm256_load_ps(weights.panel->d[b] + 8 * half)
                                : load_scales_256<kLayout>(record, 0, half);
        __m256 m = _mm256_setzero_ps();
        if constexpr (kMin) {
          m = kPanel ? _mm256_load_ps(weights.panel->m[b] + 8 * half)
                     : load_scales_256<kLayout>(record, 1, half);
        }
        DW_UNROLL(8)
        for (int t = 0; t < kCount; ++t) {
          float* slot = acc_out + t * kRowGroup + 8 * half;
          __m256 a = kInRegisters ? acc[t][half] : _mm256_load_ps(slot);
          a = add_block(sums[t][half], d, m, input, t, b, a);
          if (kInRegisters) acc[t][half] = a;
          if (!kInRegisters) _mm256_store_ps(slot, a);
        }
      }
    }
    if constexpr (kInRegisters) {
      for (int i = 0; i < 2 * kCount; ++i) _mm256_store_ps(acc_out + 8 * i, acc[i / 2][i % 2]);
    }
  }

 private:
  static DW_ALWAYS_INLINE void prefetch(const uint8_t* record) {
    for (size_t i = 0; i < kRecordBytes; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(record + kPrefetchBytes256 + i), _MM_HINT_T0);
    }
  }

  static DW_ALWAYS_INLINE __m256 add_block(__m256i sum, __m256 d, __m256 m, const TileInput& input, int t,
                                           int b, __m256 acc) {
    if constexpr (kCorrected)
      sum = _mm256_add_epi32(sum, _mm256_set1_epi32(input.correction[t][input.first + b]));
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum),
                          _mm256_mul_ps(d, _mm256_set1_ps(input.d[t][input.first + b])), acc);
    if constexpr (kMin) acc = _mm256_fmadd_ps(m, _mm256_set1_ps(input.s[t][input.first + b]), acc);
    return acc;
  }
};

}  // namespace driftwood::kernels
