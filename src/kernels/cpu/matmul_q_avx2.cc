// Quantised matmul for AVX2.
//
// P4: u4 x s8 by vpmaddubsw. A lane's four codes of eight quads add up to at most 8 * 2 * 15 * 127 = 30,480
// in int16, so a whole block is summed in int16 and widened once. P8: s8 x s8 as |w| x sign(x, w): at most 2
// * 128 * 127 = 32,512 fits int16, each product is widened at once.
//     |-128| is 0x80, which vpmaddubsw reads as 128; x is never -128.
#include "kernels/cpu/matmul_avx2.h"
#include "kernels/cpu/matmul_q_256.h"

namespace driftwood::kernels::avx2 {
namespace {

struct Products {
  static constexpr int kTokens8 = 4;
  static constexpr int kOffset8 = 0;

  template <int kTokens, bool kPanel>
  static DW_ALWAYS_INLINE void p4(const uint8_t* codes, const int8_t* q, int64_t q_stride,
                                  BlockSums<kTokens>& sums) {
    DW_UNROLL(8)
    for (int t = 0; t < kTokens; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_si256();
    DW_UNROLL(4)
    for (int pair = 0; pair < 4; ++pair) {
      __m256i w[2][2];
      load_quads_p4<kPanel>(codes, pair, w);
      DW_UNROLL(2)
      for (int quad = 0; quad < 2; ++quad) {
        DW_UNROLL(8)
        for (int t = 0; t < kTokens; ++t) {
          const __m256i x = broadcast4_256(q + t * q_stride + 8 * pair + 4 * quad);
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

  template <int kTokens, bool kPanel>
  static DW_ALWAYS_INLINE void p8(const uint8_t* codes, const uint8_t* magnitudes, const int8_t* q,
                                  int64_t q_stride, BlockSums<kTokens>& sums) {
    const __m256i ones = _mm256_set1_epi16(1);
    DW_UNROLL(8)
    for (int t = 0; t < kTokens; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_si256();
    DW_UNROLL(8)
    for (int j = 0; j < 8; ++j) {
      DW_UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        const __m256i w = load_256(codes + 64 * j + 32 * half);
        const __m256i magnitude = kPanel ? load_256(magnitudes + 64 * j + 32 * half) : _mm256_abs_epi8(w);
        DW_UNROLL(8)
        for (int t = 0; t < kTokens; ++t) {
          const __m256i x = _mm256_sign_epi8(broadcast4_256(q + t * q_stride + 4 * j), w);
          const __m256i pairs = _mm256_maddubs_epi16(magnitude, x);
          sums[t][half] = _mm256_add_epi32(sums[t][half], _mm256_madd_epi16(pairs, ones));
          pin(sums[t][half]);
        }
      }
    }
  }

  static DW_ALWAYS_INLINE void unpack_p8(__m256i w, uint8_t* codes, uint8_t* magnitudes) {
    store_256(codes, w);
    store_256(magnitudes, _mm256_abs_epi8(w));
  }
};

template <PackedLayout kLayout, bool kMin, bool kCorrected>
using Tile = QuantisedTile256<Products, kLayout, kMin, kCorrected>;

}  // namespace

void matmul_quantised(const MatmulArgs& args, int64_t begin, int64_t end) {
  matmul_any_layout<Tile>(args, begin, end);
}

}  // namespace driftwood::kernels::avx2
