#include "sampler/argmax.h"

#include <algorithm>
#include <limits>

namespace driftwood::sampler {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr int kLanes = 64;  // more than a compiler unrolls by itself, so that it makes vectors of them
constexpr int64_t kBlock = 4096;

// Largest of values[0, count); a comparison with NaN is false, so a NaN leaves its lane as it was.
float block_max(const float* values, int64_t count) {
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, kNothing);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  for (; i < count; ++i) lanes[0] = values[i] > lanes[0] ? values[i] : lanes[0];
  float best = kNothing;
  for (float lane : lanes) best = lane > best ? lane : best;
  return best;
}

struct Best {
  float value = kNothing;
  int64_t block = -1;  // index of the first value of the first block that holds it
};

Best best_block(std::span<const float> values) {
  const int64_t count = static_cast<int64_t>(values.size());
  Best best;
  for (int64_t start = 0; start < count; start += kBlock) {
    const float value = block_max(values.data() + start, std::min(kBlock, count - start));
    if (value > best.value) best = {value, start};
  }
  return best;
}

}  // namespace

int64_t argmax(std::span<const float> values) {
  const Best best = best_block(values);
  if (best.block < 0) return -1;
  int64_t index = best.block;
  while (values[index] != best.value) ++index;
  return index;
}

float largest(std::span<const float> values) { return best_block(values).value; }

}  // namespace driftwood::sampler
