// Quantised matmul for AVX-VNNI, the rest of the processors that have vpdpbusd without AVX-512: u8 x s8, four
// products added to an int32 lane by one instruction. P8: a code goes in as code + 128 (its top bit flipped)
// and 128 * isum comes off again, exactly in int32. Everything but the quantised matmul is AVX2's.
#include "kernels/cpu/matmul_kernels.h"
#include "kernels/cpu/matmul_q_256.h"
#include "kernels/kernel_table.h"

namespace driftwood::kernels::avxvnni {
namespace {

struct Products {
  static constexpr int kTokens8 = 6;
  static constexpr int kOffset8 = 128;

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
      for (int quad = 0; quad < 2; ++quad)
        add_quad<kTokens>(w[quad], q + 8 * pair + 4 * quad, q_stride, sums);
    }
  }

  template <int kTokens, bool kPanel>
  static DW_ALWAYS_INLINE void p8(const uint8_t* codes, const uint8_t*, const int8_t* q, int64_t q_stride,
                                  BlockSums<kTokens>& sums) {
    DW_UNROLL(8)
    for (int t = 0; t < kTokens; ++t) sums[t][0] = sums[t][1] = _mm256_setzero_si256();
    DW_UNROLL(8)
    for (int j = 0; j < 8; ++j) {
      __m256i w[2];
      for (int half = 0; half < 2; ++half) {
        const __m256i stored = load_256(codes + 64 * j + 32 * half);
        w[half] = kPanel ? stored : flip(stored);
      }
      add_quad<kTokens>(w, q + 4 * j, q_stride, sums);
    }
  }

  static DW_ALWAYS_INLINE void unpack_p8(__m256i w, uint8_t* codes, uint8_t*) { store_256(codes, flip(w)); }

 private:
  static DW_ALWAYS_INLINE __m256i flip(__m256i w) { return _mm256_xor_si256(w, _mm256_set1_epi8(-128)); }

  template <int kTokens>
  static DW_ALWAYS_INLINE void add_quad(const __m256i (&w)[2], const int8_t* q, int64_t q_stride,
                                        BlockSums<kTokens>& sums) {
    DW_UNROLL(8)
    for (int t = 0; t < kTokens; ++t) {
      const __m256i x = broadcast4_256(q + t * q_stride);
      sums[t][0] = _mm256_dpbusd_avx_epi32(sums[t][0], w[0], x);
      sums[t][1] = _mm256_dpbusd_avx_epi32(sums[t][1], w[1], x);
    }
  }
};

template <PackedLayout kLayout, bool kMin, bool kCorrected>
using Tile = QuantisedTile256<Products, kLayout, kMin, kCorrected>;

void matmul(const MatmulArgs& args, int64_t begin, int64_t end) {
  if (is_quantised(args.weight.layout)) {
    matmul_any_layout<Tile>(args, begin, end);
  } else {
    avx2::matmul(args, begin, end);
  }
}

}  // namespace

const KernelTable& table() {
  static const KernelTable kTable = [] {
    KernelTable own = avx2::table();
    own.isa = "avxvnni";
    own.matmul = matmul;
    return own;
  }();
  return kTable;
}

}  // namespace driftwood::kernels::avxvnni
