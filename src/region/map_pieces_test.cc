// Parts of a region that change places with a file's, images that are read, and reading ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "os/memory_map.h"
#include "region/image_file.h"
#include "region/read_ahead.h"
#include "region/region.h"
#include "region/temporary_file_for_test.h"

namespace driftwood::region {
namespace {

constexpr size_t kUnit = kImageAlignment;

std::vector<uint8_t> pattern(size_t bytes, uint8_t first) {
  std::vector<uint8_t> result(bytes);
  for (size_t i = 0; i < bytes; ++i) result[i] = static_cast<uint8_t>(first + i % 251);
  return result;
}

bool all_equal(const uint8_t* bytes, size_t count, uint8_t value) {
  return std::all_of(bytes, bytes + count, [&](uint8_t b) { return b == value; });
}

class MappedPieces : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(file_.write_at(0, bytes_));
    std::memset(region_->base(), 0xee, 8 * kUnit);
  }
  uint8_t* at(size_t unit) { return region_->base() + unit * kUnit; }

  TemporaryFile file_;
  const std::vector<uint8_t> bytes_ = pattern(4 * kUnit, 3);
  const std::unique_ptr<Region> region_ = std::move(*Region::create(8 * kUnit, 0, 8 * kUnit));
};

TEST_F(MappedPieces, AFilesBytesTakeAPlaceAndGiveItBack) {
  ASSERT_TRUE(region_->map_piece(2 * kUnit, {file_.fd(), kUnit, 2 * kUnit}).is_ok());
  EXPECT_EQ(std::memcmp(at(2), bytes_.data() + kUnit, 2 * kUnit), 0);
  EXPECT_TRUE(all_equal(at(0), 2 * kUnit, 0xee));
  EXPECT_TRUE(all_equal(at(4), 4 * kUnit, 0xee));
  std::memset(at(3), 0x11, kUnit);
  EXPECT_EQ(file_.bytes(), bytes_) << "a write reached the file";

  ASSERT_TRUE(region_->unmap_piece(2 * kUnit, 2 * kUnit).is_ok());
  EXPECT_TRUE(all_equal(at(2), 2 * kUnit, 0));
  std::memset(at(2), 0x22, 2 * kUnit);
  EXPECT_LE(file_.mappings(), 0);
  EXPECT_EQ(file_.bytes(), bytes_);
}

TEST_F(MappedPieces, ZerosNeedNoFile) {
  ASSERT_TRUE(region_->map_piece(kUnit, {-1, 0, kUnit}).is_ok());
  EXPECT_TRUE(all_equal(at(1), kUnit, 0));
  EXPECT_TRUE(all_equal(at(0), kUnit, 0xee));
  EXPECT_TRUE(all_equal(at(2), kUnit, 0xee));
}

TEST_F(MappedPieces, RefusesWhatDoesNotFitAndChangesNothing) {
  const auto refused = [&](const FileImage& image, Code code, const std::string& words) {
    const Status status = region_->map_piece(0, image);
    EXPECT_EQ(status.code(), code) << status.to_string();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    EXPECT_TRUE(all_equal(at(0), 8 * kUnit, 0xee));
  };
  refused({file_.fd(), 4096, kUnit}, Code::kInvalidArgument, "offset 4096");
  refused({file_.fd(), 0, 100}, Code::kInvalidArgument, "100 bytes");
  refused({file_.fd(), 3 * kUnit, 2 * kUnit}, Code::kDataLoss, "262144 bytes");
  EXPECT_DEATH((void)region_->map_piece(7 * kUnit, {file_.fd(), 0, 2 * kUnit}), "committed");
  EXPECT_DEATH((void)region_->unmap_piece(100, kUnit), "committed");
}

TEST_F(MappedPieces, AnImageCanBeRead) {
  std::vector<uint8_t> read(2 * kUnit, 0x77);
  ASSERT_TRUE(read_image({file_.fd(), kUnit, 2 * kUnit}, read.data()).is_ok());
  EXPECT_EQ(std::memcmp(read.data(), bytes_.data() + kUnit, 2 * kUnit), 0);
  ASSERT_TRUE(read_image({-1, 0, kUnit}, read.data()).is_ok());
  EXPECT_TRUE(all_equal(read.data(), kUnit, 0));
  const Status status = read_image({file_.fd(), 3 * kUnit, 2 * kUnit}, read.data());
  EXPECT_EQ(status.code(), Code::kDataLoss) << status.to_string();
  EXPECT_NE(status.message().find("262144 bytes"), std::string::npos) << status.message();
  EXPECT_FALSE(read_image({file_.write_only_fd(), 0, kUnit}, read.data()).is_ok());
}

TEST_F(MappedPieces, AreReadAheadWhereTheDiskIsNeeded) {
  ASSERT_TRUE(file_.drop_cached());
  ASSERT_TRUE(region_->map_piece(0, {file_.fd(), 0, 4 * kUnit}).is_ok());
  const auto missing = [&] {
    size_t pages = 0;
    for (size_t i = 0; i < 4 * kUnit; i += os::page_bytes()) pages += !os::is_resident(at(0) + i);
    return pages;
  };
  if (missing() == 0) GTEST_SKIP() << "this system keeps the file in memory, or does not tell";
  ReadAhead ahead;
  const std::span<const uint8_t> range(at(0), 4 * kUnit);
  ahead.request({&range, 1});
  ahead.wait();
  EXPECT_EQ(missing(), 0u);
  EXPECT_EQ(std::memcmp(at(0), bytes_.data(), 4 * kUnit), 0);
}

TEST_F(MappedPieces, AnImageIsCachedOrNot) {
  const FileImage image{file_.fd(), 0, 4 * kUnit};
  EXPECT_TRUE(seems_cached({-1, 0, kUnit}));
  EXPECT_FALSE(seems_cached({file_.fd(), 4 * kUnit, kUnit})) << "past its end";
  ASSERT_EQ(file_.bytes(), bytes_);
  if (!seems_cached(image)) GTEST_SKIP() << "this system does not tell";
  ASSERT_TRUE(file_.drop_cached());
  if (seems_cached(image)) GTEST_SKIP() << "this system keeps the file in memory";
  ASSERT_EQ(file_.bytes(), bytes_);
  EXPECT_TRUE(seems_cached(image));
}

TEST(ReadAhead, DropsWhatIsLeftWhenItGoes) {
  const auto region = std::move(*Region::create(64 << 20, 0, 64 << 20));
  for (int i = 0; i < 20; ++i) {
    ReadAhead ahead;
    const std::span<const uint8_t> range(region->base(), size_t{64} << 20);
    ahead.request({&range, 1});
    ahead.request({});
  }
}

}  // namespace
}  // namespace driftwood::region
