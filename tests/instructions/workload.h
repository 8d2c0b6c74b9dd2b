// What tests/instructions counts: fixed pieces of work for the AVX2 kernels. Preparing a case is not counted,
// running it is. Counts do not depend on the values, so buffers hold one value each: nothing is gained by
// random ones, and filling them under valgrind would take longer than the kernels.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"

namespace driftwood::instructions {

struct Work {
  const char* unit;  // what `amount` counts: "MAC" or "value"
  int64_t amount;
  double least;  // instructions a unit costs if the inner loop did its arithmetic, loads and stores only
  std::function<void()> run;
};

struct Case {
  std::string name;
  std::function<Work()> prepare;
};

std::vector<Case> quantised_cases();
std::vector<Case> dense_cases();
std::vector<Case> attention_cases();
std::vector<Case> row_cases();

inline const kernels::KernelTable& table() { return kernels::avx2::table(); }

// Bytes at a multiple of 64. 0x2c everywhere is a small normal number as f16, bf16 and f32, and codes 12
// and 2.
class Bytes {
 public:
  explicit Bytes(size_t size) : lines_((size + 63) / 64) {
    std::memset(lines_.data(), 0x2c, lines_.size() * sizeof(Line));
  }
  uint8_t* data() { return lines_.front().bytes; }

 private:
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  std::vector<Line> lines_;
};

// Quantised activations of `tokens` rows.
struct Activations {
  Activations(int64_t tokens, int64_t width)
      : q(tokens * width, 3), d(tokens * width / 32, 0.01f), s(d), isum(tokens * width / 32, 96) {}
  ActivationsQ8 view() { return {q.data(), d.data(), s.data(), isum.data()}; }

  std::vector<int8_t> q;
  std::vector<float> d, s;
  std::vector<int32_t> isum;
};

// Instructions of the quantise rule for 32 values (quantise_block256.h): 4 loads, 14 for the largest
// magnitude, 16 for scaling and packing, 13 for the sum, 4 for what a block has one of.
inline constexpr double kQuantiseBlock = 51.0;
// Of exp_lanes for one register of 8 values.
inline constexpr double kExp = 19.0;

}  // namespace driftwood::instructions
