#include "device/cpu/read_ahead.h"

#include <gtest/gtest.h>

#include <vector>

namespace driftwood::device {
namespace {

int64_t steps(const ReadAhead& ahead, int worker, int workers) {
  int64_t count = 1;
  while (ahead(worker, workers, count - 1)) ++count;
  return count;
}

TEST(ReadAhead, NothingToFetchWithoutANextMatmul) { EXPECT_FALSE(ReadAhead(nullptr)(0, 2, 0)); }

// f32 of 64 inputs: 4 KiB a row group. 12 + 4 groups, of which 12 go in ranges: 4 to each of three workers.
TEST(ReadAhead, AWorkerFetchesItsOwnRange) {
  std::vector<uint8_t> weights(size_t{16} * 4096);
  MatmulBatchArgs next{2, {}};
  next.parts[0].weight = {PackedLayout::kF32, false, 0, 12 * 16, 64, weights.data()};
  next.parts[1].weight = {PackedLayout::kF32, false, 0, 4 * 16, 64, weights.data()};
  ASSERT_EQ(next.parts[0].weight.group_bytes(), 4096u);
  const ReadAhead ahead(&next);
  for (int worker = 0; worker < 3; ++worker) EXPECT_EQ(steps(ahead, worker, 3), 4 * 4096 / 512);
}

TEST(ReadAhead, ARangeThatCrossesMatricesIsFetchedUpToTheEndOfTheFirst) {
  std::vector<uint8_t> weights(size_t{16} * 4096);
  MatmulBatchArgs next{2, {}};
  next.parts[0].weight = {PackedLayout::kF32, false, 0, 8 * 16, 64, weights.data()};
  next.parts[1].weight = {PackedLayout::kF32, false, 0, 8 * 16, 64, weights.data()};
  const ReadAhead ahead(&next);
  EXPECT_EQ(steps(ahead, 0, 2), 6 * 4096 / 512);  // groups 0..5
  EXPECT_EQ(steps(ahead, 1, 2), 2 * 4096 / 512);  // groups 6 and 7 of 6..11
}

TEST(ReadAhead, NoMoreThanASmallCacheHolds) {
  MatmulBatchArgs next{1, {}};
  std::vector<uint8_t> weights(64);  // never read: only asked for
  next.parts[0].weight = {PackedLayout::kF32, false, 0, 1 << 20, 64, weights.data()};
  EXPECT_EQ(steps(ReadAhead(&next), 0, 1), 96 * 1024 / 512);
}

}  // namespace
}  // namespace driftwood::device
