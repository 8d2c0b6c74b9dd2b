// For every processor, by the compiler's own vectors of 16 bytes.
#include <iterator>
#include <numeric>

#include "peaks/loops.h"
#include "peaks/loops/mac_loop.h"

namespace driftwood::peaks {
namespace {

template <class Value>
struct Vector {
  static constexpr int kLanes = 16 / sizeof(Value);
  typedef Value Type __attribute__((vector_size(16)));
};

uint64_t read(const uint8_t* from, size_t bytes) {
  uint64_t sums[kReadStep / 8] = {};
  for (size_t at = 0; at < bytes; at += kReadStep) {
    for (size_t line = 0; line < kReadStep; line += 64) __builtin_prefetch(from + at + line + kReadAhead);
    const auto* words = reinterpret_cast<const uint64_t*>(from + at);
    for (size_t i = 0; i < kReadStep / 8; ++i) sums[i] += words[i];
  }
  return std::accumulate(std::begin(sums), std::end(sums), uint64_t{0});
}

template <class Value>
int64_t mac(int64_t rounds) {
  using V = typename Vector<Value>::Type;
  V a = V{} + static_cast<Value>(1);
  const V b = a;
#define DW_STEP(sum) sum + (a * b)
  DW_MAC_LOOP(V, DW_STEP, rounds);
#undef DW_STEP
  int64_t total = 0;
  for (const V& sum : sums) {
    for (int lane = 0; lane < Vector<Value>::kLanes; ++lane) total += static_cast<int64_t>(sum[lane]);
  }
  return total;
}

}  // namespace

const Loops& portable_loops() {
  static constexpr Loops kLoops = {"portable",
                                   {},
                                   read,
                                   {"16-bit multiply, add", kChains * Vector<int16_t>::kLanes, mac<int16_t>},
                                   {"f32 multiply, add", kChains * Vector<float>::kLanes, mac<float>}};
  return kLoops;
}

}  // namespace driftwood::peaks
