#include "weights/stream_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace driftwood::weights {
namespace {

// The van der Corput sequence: its first n values are spread evenly, for every n.
uint32_t reversed_bits(uint32_t x) {
  uint32_t reversed = 0;
  for (int bit = 0; bit < 32; ++bit, x >>= 1) reversed = (reversed << 1) | (x & 1u);
  return reversed;
}

}  // namespace

StreamPlan::StreamPlan(std::vector<int64_t> stage_bytes)
    : bytes_(std::move(stage_bytes)), order_(bytes_.size()), kept_(bytes_.size()) {
  total_bytes_ = std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0});
  for (const int64_t bytes : bytes_) largest_bytes_ = std::max(largest_bytes_, bytes);
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::sort(order_.begin(), order_.end(), [](size_t a, size_t b) {
    return reversed_bits(static_cast<uint32_t>(a)) < reversed_bits(static_cast<uint32_t>(b));
  });
}

void StreamPlan::keep(int64_t bytes) {
  kept_bytes_ = 0;
  for (const size_t stage : order_) {
    kept_[stage] = kept_bytes_ + bytes_[stage] <= bytes;
    if (kept_[stage]) kept_bytes_ += bytes_[stage];
  }
}

}  // namespace driftwood::weights
