#include "sampler/select.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/check.h"
#include "sampler/argmax.h"
#include "sampler/weight.h"

namespace driftwood::sampler {
namespace {

bool larger(const RankedValue& a, const RankedValue& b) {
  return a.value != b.value ? a.value > b.value : a.index < b.index;
}

// Keeps the `count` largest of `kept`; returns the smallest of them.
float prune(std::vector<RankedValue>& kept, int64_t count) {
  std::nth_element(kept.begin(), kept.begin() + (count - 1), kept.end(), larger);
  kept.resize(static_cast<size_t>(count));
  return kept.back().value;
}

// Weights are sorted into buckets by exponent and three more bits, heaviest first.
constexpr int kMantissaBits = 3;
constexpr int kFloatMantissaBits = 23;
constexpr uint32_t kShift = kFloatMantissaBits - kMantissaBits;
constexpr size_t kBuckets = (size_t{40} << kMantissaBits) + 1;

// The conversion to float is monotone, so every weight in a bucket outweighs every weight in a later one.
inline size_t bucket_of(uint64_t weight) {
  const uint32_t top = std::bit_cast<uint32_t>(static_cast<float>(kWholeWeight)) >> kShift;
  const float rounded = static_cast<float>(static_cast<int64_t>(weight));
  return top - (std::bit_cast<uint32_t>(rounded) >> kShift);
}

using Items = std::span<RankedWeight>;

// The weights >= bound in ascending order of index. No branch depends on a weight: which tokens are likely is
// unpredictable to a processor, too. `scratch` only ever grows, so that nothing is cleared between calls.
Items collect(std::span<const uint64_t> weights, uint64_t bound, std::vector<RankedWeight>& scratch) {
  if (scratch.size() < weights.size()) scratch.resize(weights.size());
  size_t count = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    scratch[count] = {weights[i], static_cast<int32_t>(i)};
    count += weights[i] >= bound ? 1 : 0;
  }
  return Items(scratch.data(), count);
}

// The items for which `wanted` holds, moved to the front in their order.
template <typename Wanted>
Items keep_only(Items items, const Wanted& wanted) {
  const auto end =
      std::remove_if(items.begin(), items.end(), [&](const RankedWeight& i) { return !wanted(i); });
  return items.first(static_cast<size_t>(end - items.begin()));
}

// Bounds of some weights, both inclusive.
struct Range {
  uint64_t low;
  uint64_t high;
};

// Those of `items` whose weight is the one at which the running sum, heaviest first, reaches `goal`;
// `goal` becomes what is missing before the first of them. Each round cuts the range of weights by 256, so
// the cost is linear whatever the weights are.
Items narrow(Items items, Range range, uint64_t& goal) {
  constexpr int kSlotBits = 8;
  while (range.low != range.high) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(range.high - range.low)) - kSlotBits);
    std::array<uint64_t, size_t{1} << kSlotBits> sums{};
    for (const RankedWeight& item : items) sums[(item.weight - range.low) >> shift] += item.weight;
    size_t slot = sums.size() - 1;
    while (sums[slot] < goal) goal -= sums[slot--];
    const uint64_t low = range.low + (uint64_t{slot} << shift);
    range = {low, low + ((uint64_t{1} << shift) - 1)};
    items = keep_only(items,
                      [&](const RankedWeight& i) { return i.weight >= range.low && i.weight <= range.high; });
  }
  return items;
}

}  // namespace

void top_k(std::span<const float> values, int64_t count, std::vector<RankedValue>& kept) {
  DW_CHECK(count > 0, "top_k keeps at least one value");
  constexpr int64_t kBlock = 256;
  const int64_t size = static_cast<int64_t>(values.size());
  const size_t room = static_cast<size_t>(count + std::max(count, kBlock));
  kept.clear();
  kept.reserve(room);
  // Indices ascend, so a later value that only equals the threshold ranks behind it.
  float threshold = -std::numeric_limits<float>::infinity();
  for (int64_t start = 0; start < size; start += kBlock) {
    const int64_t length = std::min(kBlock, size - start);
    if (!(largest(values.subspan(start, length)) > threshold)) continue;
    for (int64_t i = start; i < start + length; ++i) {
      if (values[i] > threshold) kept.push_back({values[i], static_cast<int32_t>(i)});
      if (kept.size() == room) threshold = prune(kept, count);
    }
  }
  if (kept.size() > static_cast<size_t>(count)) prune(kept, count);
  std::sort(kept.begin(), kept.end(),
            [](const RankedValue& a, const RankedValue& b) { return a.index < b.index; });
}

Nucleus nucleus(std::span<const uint64_t> weights, uint64_t floor, uint64_t total, uint64_t goal,
                std::vector<RankedWeight>& scratch) {
  DW_CHECK(floor >= 1 && goal >= 1 && goal <= total, "a nucleus needs a reachable goal");
  // All weights below this bound together are at most total - goal, so the nucleus never needs them.
  const uint64_t bound = std::max(floor, (total - goal) / weights.size());
  Items items = collect(weights, bound, scratch);
  std::array<uint64_t, kBuckets> sums{};
  for (const RankedWeight& item : items) sums[bucket_of(item.weight)] += item.weight;
  size_t bucket = 0;
  uint64_t missing = goal;
  while (sums[bucket] < missing) missing -= sums[bucket++];

  items = keep_only(items, [&](const RankedWeight& item) { return bucket_of(item.weight) == bucket; });
  Range range = {kWholeWeight, 0};
  for (const RankedWeight& item : items) {
    range = {std::min(range.low, item.weight), std::max(range.high, item.weight)};
  }
  items = narrow(items, range, missing);
  // What is left has one weight: as many of them as the goal needs, lower indices first.
  const uint64_t weight = items.front().weight;
  const uint64_t before = (missing - 1) / weight;
  return {weight, items[before].index, goal - missing + (before + 1) * weight};
}

}  // namespace driftwood::sampler
