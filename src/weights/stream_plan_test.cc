#include "weights/stream_plan.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace driftwood::weights {
namespace {

TEST(StreamPlan, KeepsWhatFits) {
  StreamPlan plan({10, 20, 30, 40});
  EXPECT_EQ(plan.total_bytes(), 100);
  EXPECT_EQ(plan.largest_bytes(), 40);
  for (const int64_t bytes : {-5, 0, 9, 10, 55, 99, 100, 1000}) {
    plan.keep(bytes);
    int64_t kept = 0;
    for (size_t i = 0; i < plan.size(); ++i) kept += plan.kept(i) ? plan.bytes(i) : 0;
    EXPECT_EQ(kept, plan.kept_bytes());
    EXPECT_LE(kept, std::max<int64_t>(bytes, 0));
    EXPECT_EQ(kept == 100, bytes >= 100);
  }
}

// The disk works all through a step: no eighth of it is without its share.
TEST(StreamPlan, SpreadsEvenly) {
  constexpr size_t kStages = 256;
  StreamPlan plan(std::vector<int64_t>(kStages, 1));
  for (const int64_t kept : {64, 128, 192, 224}) {
    plan.keep(kept);
    for (size_t eighth = 0; eighth < 8; ++eighth) {
      int64_t streamed = 0;
      for (size_t i = 0; i < kStages / 8; ++i) streamed += plan.kept(eighth * kStages / 8 + i) ? 0 : 1;
      EXPECT_EQ(streamed, (static_cast<int64_t>(kStages) - kept) / 8) << kept;
    }
  }
}

TEST(StreamPlan, LessMemoryOnlyTakesAway) {
  constexpr size_t kStages = 100;
  StreamPlan more(std::vector<int64_t>(kStages, 1));
  StreamPlan less = more;
  for (int64_t kept = 1; kept <= static_cast<int64_t>(kStages); ++kept) {
    more.keep(kept);
    less.keep(kept - 1);
    for (size_t i = 0; i < kStages; ++i) EXPECT_TRUE(!less.kept(i) || more.kept(i));
  }
}

}  // namespace
}  // namespace driftwood::weights
