// Quantised matmul for AVX-512 VNNI: the sixteen rows of a group in the lanes of one vector.
//
// P4: u4 x s8 by vpdpbusd. P8: vpdpbusd wants unsigned codes, so a code goes in as code + 128 (its top bit
// flipped) and 128 * isum comes off again, exactly in int32. That and the zero point are one correction a
// block, which is what the integer accumulator starts from. g++ 12's own AVX-512 header leaves an unused
// pass-through operand unset and then warns about it where inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include "kernels/cpu/matmul_avx512.h"
#include "kernels/cpu/matmul_driver.h"
#include "kernels/cpu/unroll.h"

namespace driftwood::kernels::avx512 {
namespace {

constexpr int kPrefetchBytes = 2048;  // ahead in the weight stream

DW_ALWAYS_INLINE __m512i load(const uint8_t* p) { return _mm512_loadu_si512(p); }

DW_ALWAYS_INLINE __m512i broadcast4(const int8_t* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return _mm512_set1_epi32(four);
}

// Scales (index 0) or minima (index 1) of a block record.
template <PackedLayout kLayout>
DW_ALWAYS_INLINE __m512 load_scales(const uint8_t* record, int index) {
  const uint8_t* p = record + (four_bit(kLayout) ? 256 : 512);
  if constexpr (half_scales(kLayout)) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * index)));
  } else {
    return _mm512_loadu_ps(p + 64 * index);
  }
}

// The block's eight quads of inputs as unsigned codes.
template <bool kFour>
DW_ALWAYS_INLINE void load_codes(const uint8_t* record, __m512i (&w)[8]) {
  if constexpr (kFour) {
    const __m512i low = _mm512_set1_epi8(15);
    DW_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const __m512i pair = load(record + 64 * j);
      w[2 * j] = _mm512_and_si512(pair, low);
      w[2 * j + 1] = _mm512_and_si512(_mm512_srli_epi16(pair, 4), low);
    }
  } else {
    DW_UNROLL(8)
    for (int j = 0; j < 8; ++j) w[j] = _mm512_xor_si512(load(record + 64 * j), _mm512_set1_epi8(-128));
  }
}

template <PackedLayout kLayout, bool kMin, bool kCorrected>
struct Tile {
  static constexpr bool kFour = four_bit(kLayout);
  using PanelTile = Tile<kFour ? PackedLayout::kP4H : PackedLayout::kP8H, kMin, kCorrected>;
  static constexpr int kTokens = 8;
  static constexpr int kDirectTokens = 4;
  static constexpr int kOffset = kFour ? 0 : 128;
  static constexpr size_t kRecordBytes = block_record_bytes(kLayout, kMin);
  static constexpr int kCodeBytes = kQuantBlock * kRowGroup;  // of a panel's block

  static void unpack(const uint8_t* records, int blocks, WeightPanel& panel) {
    for (int b = 0; b < blocks; ++b) {
      const uint8_t* record = records + b * kRecordBytes;
      __m512i w[8];
      load_codes<kFour>(record, w);
      for (int j = 0; j < 8; ++j) _mm512_store_si512(panel.codes + b * kCodeBytes + 64 * j, w[j]);
      _mm512_store_ps(panel.d[b], load_scales<kLayout>(record, 0));
      if constexpr (kMin) _mm512_store_ps(panel.m[b], load_scales<kLayout>(record, 1));
    }
  }

  template <int kCount, bool kPanel>
  static void run(const TileWeights& weights, const TileInput& input, float* acc_out) {
    __m512 acc[kCount];
    DW_UNROLL(8)
    for (int t = 0; t < kCount; ++t) acc[t] = _mm512_setzero_ps();
    const uint8_t* record = weights.records;
    const int8_t* q = input.q;
    for (int b = 0; b < weights.blocks; ++b, record += kPanel ? 0 : kRecordBytes, q += kQuantBlock) {
      __m512i w[8];
      __m512 d, m = _mm512_setzero_ps();
      if constexpr (kPanel) {
        DW_UNROLL(8)
        for (int j = 0; j < 8; ++j) w[j] = load(weights.panel->codes + b * kCodeBytes + 64 * j);
        d = _mm512_load_ps(weights.panel->d[b]);
        if constexpr (kMin) m = _mm512_load_ps(weights.panel->m[b]);
      } else {
        for (size_t i = 0; i < kRecordBytes; i += 64) {
          _mm_prefetch(reinterpret_cast<const char*>(record + kPrefetchBytes + i), _MM_HINT_T0);
        }
        load_codes<kFour>(record, w);
        d = load_scales<kLayout>(record, 0);
        if constexpr (kMin) m = load_scales<kLayout>(record, 1);
      }
      DW_UNROLL(8)
      for (int t = 0; t < kCount; ++t) {
        __m512i sum =
            kCorrected ? _mm512_set1_epi32(input.correction[t][input.first + b]) : _mm512_setzero_si512();
        DW_UNROLL(8)
        for (int j = 0; j < 8; ++j) {
          sum = _mm512_dpbusd_epi32(sum, w[j], broadcast4(q + t * input.q_stride + 4 * j));
        }
        const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(input.d[t][input.first + b]));
        acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, acc[t]);
        if constexpr (kMin) acc[t] = _mm512_fmadd_ps(m, _mm512_set1_ps(input.s[t][input.first + b]), acc[t]);
      }
    }
    DW_UNROLL(8)
    for (int t = 0; t < kCount; ++t) _mm512_store_ps(acc_out + t * kRowGroup, acc[t]);
  }
};

}  // namespace

void matmul_quantised(const MatmulArgs& args, int64_t begin, int64_t end) {
  matmul_any_layout<Tile>(args, begin, end);
}

}  // namespace driftwood::kernels::avx512
