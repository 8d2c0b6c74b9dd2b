// x86-64. Every function carries its own instruction set, so that the file is built for the baseline.
#include <immintrin.h>

#include "peaks/loops.h"
#include "peaks/loops/mac_loop.h"

#define DW_AVX2 __attribute__((target("avx2,fma")))
#define DW_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

namespace driftwood::peaks {
namespace {

DW_AVX2 int64_t sum_of(__m256i words) {
  alignas(32) int64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), words);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

DW_AVX2 uint64_t read_avx2(const uint8_t* from, size_t bytes) {
  __m256i sums[4] = {};
  for (size_t at = 0; at < bytes; at += kReadStep) {
    const uint8_t* p = from + at;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      if (i % 2 == 0) _mm_prefetch(reinterpret_cast<const char*>(p + 32 * i + kReadAhead), _MM_HINT_T0);
      sums[i % 4] = _mm256_add_epi64(sums[i % 4], _mm256_load_si256(reinterpret_cast<const __m256i*>(p) + i));
    }
  }
  return static_cast<uint64_t>(sum_of(sums[0]) + sum_of(sums[1]) + sum_of(sums[2]) + sum_of(sums[3]));
}

// 32 products of u8 x s8, added in pairs to 16-bit sums: the mix of a 4-bit matmul.
DW_AVX2 int64_t int8_avx2(int64_t rounds) {
  __m256i a = _mm256_set1_epi8(1);
  const __m256i b = _mm256_set1_epi8(1);
#define DW_STEP(sum) _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b))
  DW_MAC_LOOP(__m256i, DW_STEP, rounds);
#undef DW_STEP
  int64_t total = 0;
  for (const __m256i& sum : sums) {
    alignas(32) int16_t lanes[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
    for (const int16_t lane : lanes) total += lane;
  }
  return total;
}

DW_AVX2 int64_t f32_avx2(int64_t rounds) {
  __m256 a = _mm256_set1_ps(1);
  const __m256 b = _mm256_set1_ps(1);
#define DW_STEP(sum) _mm256_fmadd_ps(a, b, sum)
  DW_MAC_LOOP(__m256, DW_STEP, rounds);
#undef DW_STEP
  int64_t total = 0;
  for (const __m256& sum : sums) {
    alignas(32) float lanes[8];
    _mm256_store_ps(lanes, sum);
    for (const float lane : lanes) total += static_cast<int64_t>(lane);
  }
  return total;
}

DW_AVX512 uint64_t read_avx512(const uint8_t* from, size_t bytes) {
  __m512i sums[4] = {};
  for (size_t at = 0; at < bytes; at += kReadStep) {
    const uint8_t* p = from + at;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(p + 64 * i + kReadAhead), _MM_HINT_T0);
      sums[i] = _mm512_add_epi64(sums[i], _mm512_load_si512(p + 64 * i));
    }
  }
  uint64_t total = 0;
  for (const __m512i& sum : sums) {
    alignas(64) uint64_t lanes[8];
    _mm512_store_si512(lanes, sum);
    for (const uint64_t lane : lanes) total += lane;
  }
  return total;
}

DW_AVX512 int64_t int8_avx512(int64_t rounds) {
  __m512i a = _mm512_set1_epi8(1);
  const __m512i b = _mm512_set1_epi8(1);
#define DW_STEP(sum) _mm512_dpbusd_epi32(sum, a, b)
  DW_MAC_LOOP(__m512i, DW_STEP, rounds);
#undef DW_STEP
  int64_t total = 0;
  for (const __m512i& sum : sums) {
    alignas(64) int32_t lanes[16];
    _mm512_store_si512(lanes, sum);
    for (const int32_t lane : lanes) total += lane;
  }
  return total;
}

DW_AVX512 int64_t f32_avx512(int64_t rounds) {
  __m512 a = _mm512_set1_ps(1);
  const __m512 b = _mm512_set1_ps(1);
#define DW_STEP(sum) _mm512_fmadd_ps(a, b, sum)
  DW_MAC_LOOP(__m512, DW_STEP, rounds);
#undef DW_STEP
  int64_t total = 0;
  for (const __m512& sum : sums) {
    alignas(64) float lanes[16];
    _mm512_store_ps(lanes, sum);
    for (const float lane : lanes) total += static_cast<int64_t>(lane);
  }
  return total;
}

constexpr const char* kAvx2Features[] = {"avx2", "fma"};
constexpr const char* kAvx512Features[] = {"avx512f", "avx512bw", "avx512vl", "avx512vnni"};

}  // namespace

std::span<const Loops> built_loops() {
  static const Loops kLoops[] = {
      {"avx512",
       kAvx512Features,
       read_avx512,
       {"vpdpbusd zmm", kChains * 64, int8_avx512},
       {"vfmadd ps zmm", kChains * 16, f32_avx512}},
      {"avx2",
       kAvx2Features,
       read_avx2,
       {"vpmaddubsw + vpaddw ymm", kChains * 32, int8_avx2},
       {"vfmadd ps ymm", kChains * 8, f32_avx2}},
      portable_loops(),
  };
  return kLoops;
}

}  // namespace driftwood::peaks
