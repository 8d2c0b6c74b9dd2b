// Quantised matmul for AVX2: eight rows in the lanes of a vector, two vectors for a row group.
//
// P4: u4 x s8 by vpmaddubsw. A lane's four codes of eight quads add up to at most 8 * 2 * 15 * 127 = 30,480
// in int16, so a whole block is summed in int16 and widened once. P8: s8 x s8 as |w| x sign(x, w): at most 2
// * 128 * 127 = 32,512 fits int16, each product is widened at once.
//     |-128| is 0x80, which vpmaddubsw reads as 128; x is never -128.
// Accumulators of more than two tokens live in L1, not in registers: sixteen registers hold the integer sums.
#include <immintrin.h>

#include "kernels/cpu/matmul_avx2.h"
#include "kernels/cpu/matmul_driver.h"
#include "kernels/cpu/unroll.h"

namespace driftwood::kernels::avx2 {
namespace {

constexpr int kPrefetchBytes = 2048;  // ahead in the weight stream

DW_ALWAYS_INLINE __m256i load(const uint8_t* p) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
}
DW_ALWAYS_INLINE void store(uint8_t* p, __m256i v) { _mm256_store_si256(reinterpret_cast<__m256i*>(p), v); }

DW_ALWAYS_INLINE __m256i broadcast4(const int8_t* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}

constexpr bool four_bit(PackedLayout layout) {
  return layout == PackedLayout::kP4H || layout == PackedLayout::kP4F;
}
constexpr bool half_scales(PackedLayout layout) {
  return layout == PackedLayout::kP4H || layout == PackedLayout::kP8H;
}

// Scales (index 0) or minima (index 1) of rows 8 * half .. 8 * half + 7 of a block record.
template <PackedLayout kLayout>
DW_ALWAYS_INLINE __m256 load_scales(const uint8_t* record, int index, int half) {
  const uint8_t* p = record + (four_bit(kLayout) ? 256 : 512);
  if constexpr (half_scales(kLayout)) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p + 32 * index + 16 * half)));
  } else {
    return _mm256_load_ps(reinterpret_cast<const float*>(p + 64 * index + 32 * half));
  }
}

// Keeps an integer sum where it is: compilers like to regroup integer additions, do all products first and
// spill.
DW_ALWAYS_INLINE void pin(__m256i& sum) { asm("" : "+x"(sum)); }

template <int kTokens>
using BlockSums = __m256i[kTokens][2];

// Sums of codes times activations of one block, in int32 lanes. `codes` is the record's or the panel's.
template <int kTokens, bool kPanel>
DW_ALWAYS_INLINE void block_sums_p4(const uint8_t* codes, const int8_t* q, int64_t q_stride,
                                    BlockSums<kTokens>& sums) {
  const __m256i low = _mm256_set1_epi8(15);
  DW_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_si256();
  DW_UNROLL(4)
  for (int j = 0; j < 4; ++j) {
    __m256i w[2][2];  // [quad][half]
    if constexpr (kPanel) {
      for (int i = 0; i < 4; ++i) w[i >> 1][i & 1] = load(codes + 128 * j + 32 * i);
    } else {
      for (int half = 0; half < 2; ++half) {
        const __m256i pair = load(codes + 64 * j + 32 * half);
        w[0][half] = _mm256_and_si256(pair, low);
        w[1][half] = _mm256_and_si256(_mm256_srli_epi16(pair, 4), low);
      }
    }
    DW_UNROLL(2)
    for (int quad = 0; quad < 2; ++quad) {
      DW_UNROLL(8)
      for (int t = 0; t < kTokens; ++t) {
        const __m256i x = broadcast4(q + t * q_stride + 8 * j + 4 * quad);
        sums[t][0] = _mm256_add_epi16(sums[t][0], _mm256_maddubs_epi16(w[quad][0], x));
        sums[t][1] = _mm256_add_epi16(sums[t][1], _mm256_maddubs_epi16(w[quad][1], x));
        pin(sums[t][0]);
        pin(sums[t][1]);
      }
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
  DW_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) {
    sums[t][0] = _mm256_madd_epi16(sums[t][0], ones);
    sums[t][1] = _mm256_madd_epi16(sums[t][1], ones);
  }
}

// `magnitudes` is |codes| (the panel's) or null.
template <int kTokens, bool kPanel>
DW_ALWAYS_INLINE void block_sums_p8(const uint8_t* codes, const uint8_t* magnitudes, const int8_t* q,
                                    int64_t q_stride, BlockSums<kTokens>& sums) {
  const __m256i ones = _mm256_set1_epi16(1);
  DW_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_si256();
  DW_UNROLL(8)
  for (int j = 0; j < 8; ++j) {
    DW_UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      const __m256i w = load(codes + 64 * j + 32 * half);
      const __m256i magnitude = kPanel ? load(magnitudes + 64 * j + 32 * half) : _mm256_abs_epi8(w);
      DW_UNROLL(8)
      for (int t = 0; t < kTokens; ++t) {
        const __m256i x = _mm256_sign_epi8(broadcast4(q + t * q_stride + 4 * j), w);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, x);
        sums[t][half] = _mm256_add_epi32(sums[t][half], _mm256_madd_epi16(pairs, ones));
        pin(sums[t][half]);
      }
    }
  }
}

template <PackedLayout kLayout, bool kMin, bool kCorrected>
struct Tile {
  static constexpr bool kFour = four_bit(kLayout);
  using PanelTile = Tile<kFour ? PackedLayout::kP4H : PackedLayout::kP8H, kMin, kCorrected>;
  static constexpr int kTokens = kFour ? 6 : 4;
  static constexpr int kDirectTokens = 4;
  static constexpr int kOffset = 0;
  static constexpr size_t kRecordBytes = block_record_bytes(kLayout, kMin);
  static constexpr int kCodeBytes = kSegment * kRowGroup / kSegmentBlocks;  // of a panel's block

  static void unpack(const uint8_t* records, int blocks, WeightPanel& panel) {
    const __m256i low = _mm256_set1_epi8(15);
    for (int b = 0; b < blocks; ++b) {
      const uint8_t* record = records + b * kRecordBytes;
      uint8_t* codes = panel.codes + b * kCodeBytes;
      if constexpr (kFour) {  // [j][quad][half][8 rows][4]
        for (int i = 0; i < 8; ++i) {
          const __m256i pair = load(record + 32 * i);
          uint8_t* to = codes + 128 * (i >> 1) + 32 * (i & 1);
          store(to, _mm256_and_si256(pair, low));
          store(to + 64, _mm256_and_si256(_mm256_srli_epi16(pair, 4), low));
        }
      } else {
        for (int i = 0; i < 16; ++i) {
          const __m256i w = load(record + 32 * i);
          store(codes + 32 * i, w);
          store(panel.magnitudes + b * kCodeBytes + 32 * i, _mm256_abs_epi8(w));
        }
      }
      for (int half = 0; half < 2; ++half) {
        _mm256_store_ps(panel.d[b] + 8 * half, load_scales<kLayout>(record, 0, half));
        if constexpr (kMin) _mm256_store_ps(panel.m[b] + 8 * half, load_scales<kLayout>(record, 1, half));
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
        block_sums_p4<kCount, kPanel>(codes, q, q_stride, sums);
      } else {
        const uint8_t* magnitudes = kPanel ? weights.panel->magnitudes + b * kCodeBytes : nullptr;
        block_sums_p8<kCount, kPanel>(codes, magnitudes, q, q_stride, sums);
      }
      DW_UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        const __m256 d =
            kPanel ? _mm256_load_ps(weights.panel->d[b] + 8 * half) : load_scales<kLayout>(record, 0, half);
        __m256 m = _mm256_setzero_ps();
        if constexpr (kMin) {
          m = kPanel ? _mm256_load_ps(weights.panel->m[b] + 8 * half) : load_scales<kLayout>(record, 1, half);
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
      _mm_prefetch(reinterpret_cast<const char*>(record + kPrefetchBytes + i), _MM_HINT_T0);
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

}  // namespace

void matmul_quantised(const MatmulArgs& args, int64_t begin, int64_t end) {
  switch (args.weight.layout) {
    case PackedLayout::kP4H:
      return matmul_layout<Tile, PackedLayout::kP4H>(args, begin, end);
    case PackedLayout::kP4F:
      return matmul_layout<Tile, PackedLayout::kP4F>(args, begin, end);
    case PackedLayout::kP8H:
      return matmul_layout<Tile, PackedLayout::kP8H>(args, begin, end);
    case PackedLayout::kP8F:
      return matmul_layout<Tile, PackedLayout::kP8F>(args, begin, end);
    default:
      return;  // dense layouts go to matmul_dense
  }
}

}  // namespace driftwood::kernels::avx2
