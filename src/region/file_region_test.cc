// Regions that begin with a file's pages: copy-on-write, and which pages were written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "region/file_for_test.h"

namespace driftwood::region {
namespace {

std::unique_ptr<Region> region_on(const FileImage& image, size_t more_bytes = 0) {
  auto region = Region::create_on_file({&image, 1}, 16u << 20, os_page_bytes(), image.length + more_bytes);
  EXPECT_TRUE(region.is_ok()) << region.status().to_string();
  return std::move(region).value();
}

TEST(FileRegion, BeginsWithTheFilesBytesAndZeroesAfterThem) {
  const TestFile file(32);
  const size_t page = os_page_bytes();
  auto region = region_on(file.image(), 2 * page);
  EXPECT_EQ(region->image_bytes(), 32 * page);
  EXPECT_EQ(region->committed_bytes(), 34 * page);
  EXPECT_EQ(std::memcmp(region->base(), file.expected(), 32 * page), 0);
  EXPECT_TRUE(
      std::all_of(region->base() + 32 * page, region->base() + 34 * page, [](uint8_t b) { return b == 0; }));
  uint8_t* base = region->base();
  ASSERT_TRUE(region->commit(64 * page).is_ok());
  EXPECT_EQ(region->base(), base);
  EXPECT_EQ(base[64 * page - 1], 0);
  base[64 * page - 1] = 1;
}

TEST(FileRegion, WritesStayInTheRegionAndTheDescriptorMayClose) {
  const TestFile file(8);
  const size_t page = os_page_bytes();
  FileImage image = file.image();
  image.fd = dup(file.fd());
  auto first = region_on(image);
  auto second = region_on(image);
  close(image.fd);
  std::memset(first->base(), 0xee, 8 * page);
  EXPECT_EQ(std::memcmp(second->base(), file.expected(), 8 * page), 0);
  second->base()[3] = 0x11;
  EXPECT_EQ(first->base()[3], 0xee);
  EXPECT_TRUE(file.unchanged());
}

TEST(FileRegion, BadImagesAreRefused) {
  const TestFile file(32);
  const size_t page = os_page_bytes();
  const auto refused = [&](FileImage image, size_t reserve, size_t commit) {
    auto region = Region::create_on_file({&image, 1}, reserve, 0, commit);
    EXPECT_FALSE(region.is_ok());
    return region.status();
  };
  FileImage image = file.image();
  image.offset = page;
  EXPECT_EQ(refused(image, 1 << 20, 32 * page).code(), Code::kInvalidArgument);
  image = file.image();
  image.length -= 1;
  EXPECT_EQ(refused(image, 1 << 20, 32 * page).code(), Code::kInvalidArgument);
  image = file.image();
  EXPECT_EQ(refused(image, 1 << 20, 31 * page).code(), Code::kInvalidArgument);
  EXPECT_EQ(refused(image, 16 * page, 32 * page).code(), Code::kOutOfRange);
  image.length += page;
  const Status shorter = refused(image, 1 << 20, 33 * page);
  EXPECT_EQ(shorter.code(), Code::kDataLoss);
  EXPECT_NE(shorter.message().find(std::to_string(kImageAlignment + 32 * page)), std::string::npos)
      << shorter.message();
  image.offset = UINT64_MAX - (kImageAlignment - 1);
  EXPECT_EQ(refused(image, 1 << 20, 33 * page).code(), Code::kDataLoss);
  image = FileImage{-2, 0, page};
  EXPECT_FALSE(refused(image, 1 << 20, page).message().empty());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  image.fd = ends[0];
  EXPECT_EQ(refused(image, 1 << 20, page).code(), Code::kInvalidArgument);
  close(ends[0]);
  close(ends[1]);
}

class DirtyPages : public testing::TestWithParam<DirtySource> {
 protected:
  // What this system does not have is skipped; comparing is always there.
  static bool supported(const Region& region) {
    return region.dirty_pages(GetParam()).is_ok() || GetParam() == DirtySource::kCompare;
  }
};

TEST_P(DirtyPages, AreExactlyThoseWritten) {
  const TestFile file(1024);
  const size_t page = os_page_bytes();
  auto region = region_on(file.image(), 64 * page);
  if (!supported(*region)) GTEST_SKIP() << region->dirty_pages(GetParam()).status().to_string();
  const FileImage base[] = {file.image()};
  volatile uint8_t sum = 0;
  for (size_t p = 0; p < 1088; ++p)
    sum = static_cast<uint8_t>(sum + region->base()[p * page]);  // reading is not writing
  auto none = region->dirty_pages(GetParam(), base);
  ASSERT_TRUE(none.is_ok()) << none.status().to_string();
  EXPECT_TRUE(none->empty());
  std::vector<ByteRange> expected;
  const auto dirty = [&](size_t first, size_t count) {
    for (size_t p = first; p < first + count; ++p) region->base()[p * page + p] ^= 0x55;
    expected.push_back(ByteRange{first * page, count * page});
  };
  dirty(0, 1);
  dirty(3, 2);
  dirty(700, 33);
  dirty(1020, 8);  // across the end of the image
  dirty(1087, 1);
  auto found = region->dirty_pages(GetParam(), base);
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  EXPECT_EQ(*found, expected);
}

TEST_P(DirtyPages, EveryOtherPageOfManyIsFound) {
  const size_t pages = 4096;
  const TestFile file(pages);
  const size_t page = os_page_bytes();
  const FileImage base[] = {file.image()};
  auto region = Region::create_on_file(base, pages * page, 0, pages * page);
  ASSERT_TRUE(region.is_ok());
  if (!supported(**region)) GTEST_SKIP() << (*region)->dirty_pages(GetParam()).status().to_string();
  for (size_t p = 1; p < pages; p += 2) (*region)->base()[p * page + 9] ^= 1;
  auto found = (*region)->dirty_pages(GetParam(), base);
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  ASSERT_EQ(found->size(), pages / 2);
  for (size_t i = 0; i < found->size(); ++i)
    ASSERT_EQ((*found)[i], (ByteRange{(2 * i + 1) * page, page})) << i;
}

TEST_P(DirtyPages, OfARegionWithoutAFileAreThoseThatAreNoLongerZero) {
  const size_t page = os_page_bytes();
  auto region = Region::create(64 * page, 0, 16 * page);
  ASSERT_TRUE(region.is_ok());
  if (!supported(**region)) GTEST_SKIP() << (*region)->dirty_pages(GetParam()).status().to_string();
  (*region)->base()[5 * page] = 1;
  auto found = (*region)->dirty_pages(GetParam());
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  EXPECT_EQ(*found, (std::vector<ByteRange>{{5 * page, page}}));
}

std::string source_name(const testing::TestParamInfo<DirtySource>& info) {
  constexpr const char* kNames[] = {"Best", "Scan", "PageMap", "Compare"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Sources, DirtyPages,
                         testing::Values(DirtySource::kBest, DirtySource::kScan, DirtySource::kPageMap,
                                         DirtySource::kCompare),
                         source_name);

TEST(DirtyPagesWithoutTheSystem, NeedTheRightBase) {
  const TestFile file(4);
  auto region = region_on(file.image());
  EXPECT_EQ(region->dirty_pages(DirtySource::kCompare).status().code(), Code::kUnimplemented);
  FileImage base = file.image();
  base.length -= os_page_bytes();
  EXPECT_EQ(region->dirty_pages(DirtySource::kCompare, {&base, 1}).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace driftwood::region
