#include "peaks/machine_peaks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "os/cpu_features.h"

namespace driftwood::peaks {
namespace {

std::vector<Loops> usable_loops() {
  std::vector<Loops> usable;
  for (const Loops& loops : built_loops()) {
    if (std::all_of(loops.features.begin(), loops.features.end(), os::cpu_has)) usable.push_back(loops);
  }
  return usable;
}

TEST(MachinePeaks, TheLastLoopsRunEverywhere) {
  EXPECT_TRUE(built_loops().back().features.empty());
  EXPECT_STREQ(best_loops().name, usable_loops().front().name);
}

TEST(MachinePeaks, LoopsReadEveryWord) {
  constexpr size_t kWords = 64 * kReadStep / 8;
  struct alignas(64) Line {
    uint64_t words[8];
  };
  std::vector<Line> memory(kWords / 8);
  uint64_t* words = memory.front().words;
  for (size_t i = 0; i < kWords; ++i) words[i] = (i + 1) * 0x9e3779b97f4a7c15u;
  const uint64_t sum = std::accumulate(words, words + kWords, uint64_t{0});
  for (const Loops& loops : usable_loops()) {
    EXPECT_EQ(loops.read(reinterpret_cast<const uint8_t*>(words), kWords * 8), sum) << loops.name;
  }
}

TEST(MachinePeaks, LoopsDoTheMultiplicationsTheyClaim) {
  for (const Loops& loops : usable_loops()) {
    for (const MacLoop& loop : {loops.int8, loops.f32}) {
      EXPECT_EQ(loop.run(1), loop.macs_per_round) << loops.name << ": " << loop.instructions;
      EXPECT_EQ(loop.run(1000), 1000 * loop.macs_per_round) << loops.name << ": " << loop.instructions;
    }
  }
}

TEST(MachinePeaks, FiguresArePositive) {
  const auto read = read_gb_per_s(best_loops(), 2);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_GT(*read, 0);
  EXPECT_GT(gmac_per_s({"nothing much", 1, [](int64_t rounds) { return rounds; }}, 3), 0);
}

}  // namespace
}  // namespace driftwood::peaks
