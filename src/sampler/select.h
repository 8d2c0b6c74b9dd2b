// The two selections of the chain, neither of which sorts a vocabulary.
//
// Both are defined by a total order (value or weight descending, index ascending), so their results do not
// depend on the algorithm. Scratch vectors belong to the caller and are reused: no allocation once they have
// grown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace driftwood::sampler {

struct RankedValue {
  float value;
  int32_t index;
};

struct RankedWeight {
  uint64_t weight;
  int32_t index;
};

// The (at most) `count` largest values above -inf, in ascending order of index. NaN is never among them.
// Cost: one pass, plus O(count log count). Precondition: count > 0.
void top_k(std::span<const float> values, int64_t count, std::vector<RankedValue>& kept);

// A set of tokens named by its last member in rank order, with the sum of its weights: token i is in it if
// its weight is larger, or equal and i <= index.
struct Nucleus {
  uint64_t weight = 0;
  int64_t index = 0;
  uint64_t sum = 0;
};

// The shortest prefix, in rank order, of the weights >= `floor` whose sum reaches `goal`.
// Preconditions: floor >= 1; `total` is the sum of the weights >= floor; 1 <= goal <= total.
Nucleus nucleus(std::span<const uint64_t> weights, uint64_t floor, uint64_t total, uint64_t goal,
                std::vector<RankedWeight>& scratch);

}  // namespace driftwood::sampler
