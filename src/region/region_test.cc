#include "region/region.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace driftwood::region {
namespace {

TEST(Region, CommittedBytesAreZeroAndStayInPlaceWhileItGrows) {
  const size_t page = os_page_bytes();
  auto region = Region::create(64 * page, 4 * page, page);
  ASSERT_TRUE(region.is_ok()) << region.status().to_string();
  Region& r = **region;
  uint8_t* base = r.base();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(base) % page, 0u);
  EXPECT_EQ(r.committed_bytes(), page);
  EXPECT_EQ(r.reserved_bytes(), 64 * page);
  std::memset(base, 7, page);
  ASSERT_TRUE(r.commit(64 * page).is_ok());
  EXPECT_EQ(r.base(), base);
  EXPECT_EQ(base[page - 1], 7);
  for (size_t i = page; i < 64 * page; ++i) ASSERT_EQ(base[i], 0) << i;
}

TEST(Region, CommitNeverShrinksAndRefusesPastTheReservation) {
  const size_t page = os_page_bytes();
  auto region = Region::create(4 * page, 0, 3 * page);
  ASSERT_TRUE(region.is_ok());
  EXPECT_TRUE((*region)->commit(page).is_ok());
  EXPECT_EQ((*region)->committed_bytes(), 3 * page);
  EXPECT_EQ((*region)->commit(5 * page).code(), Code::kOutOfRange);
  EXPECT_EQ((*region)->commit(SIZE_MAX).code(), Code::kOutOfRange);
  EXPECT_EQ((*region)->committed_bytes(), 3 * page);
  EXPECT_EQ(Region::create(SIZE_MAX, SIZE_MAX, 0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Region::create(page, 0, 2 * page).status().code(), Code::kOutOfRange);
}

TEST(Region, ContainsIsOverflowSafe) {
  const size_t page = os_page_bytes();
  auto region = Region::create(2 * page, 0, page);
  ASSERT_TRUE(region.is_ok());
  EXPECT_TRUE((*region)->contains(0, page));
  EXPECT_TRUE((*region)->contains(page, 0));
  EXPECT_FALSE((*region)->contains(page, 1));
  EXPECT_FALSE((*region)->contains(1, page));
  EXPECT_FALSE((*region)->contains(UINT64_MAX, 2));
  EXPECT_FALSE((*region)->contains(2, UINT64_MAX));
}

TEST(RegionDeathTest, GuardAndUncommittedBytesCannotBeTouched) {
  const size_t page = os_page_bytes();
  auto region = Region::create(2 * page, page, page);
  ASSERT_TRUE(region.is_ok());
  volatile uint8_t* base = (*region)->base();
  EXPECT_DEATH(base[page] = 1, "");
  EXPECT_DEATH(base[2 * page] = 1, "");
}

TEST(Region, ResidencyFollowsTouchedPagesOnly) {
  auto before = process_residency();
  ASSERT_TRUE(before.is_ok()) << before.status().to_string();
  auto region = Region::create(size_t{1} << 32, 1 << 20, 64 << 20);
  ASSERT_TRUE(region.is_ok());
  auto reserved = process_residency();
  ASSERT_TRUE(reserved.is_ok());
  EXPECT_LT(reserved->rss_bytes, before->rss_bytes + (1 << 20));
  std::memset((*region)->base(), 1, 32 << 20);
  auto touched = process_residency();
  ASSERT_TRUE(touched.is_ok());
  EXPECT_GE(touched->anonymous_bytes, before->anonymous_bytes + (31 << 20));
  region->reset();
  auto after = process_residency();
  ASSERT_TRUE(after.is_ok());
  EXPECT_LT(after->rss_bytes, before->rss_bytes + (2 << 20));
}

}  // namespace
}  // namespace driftwood::region
