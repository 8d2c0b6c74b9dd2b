// Regions that begin with pieces of several files and with zeros between them.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "region/file_for_test.h"
#include "region/page_runs.h"

namespace driftwood::region {
namespace {

constexpr size_t kUnit = kImageAlignment;

// Units of 64 KiB: 0 and 1 of a file, zeros, unit 1 of another, a hole of that, its unit 3, zeros.
class Mixed {
 public:
  Mixed() : first_(4 * kUnit / os_page_bytes()), second_(4 * kUnit / os_page_bytes(), 5) {
    // The second file's third unit becomes a hole that a longer file would have.
    holed_path_ = testing::TempDir() + "dw_pieces_XXXXXX";
    holed_ = mkstemp(holed_path_.data());
    EXPECT_EQ(pwrite(holed_, second_.expected(), 2 * kUnit, 0), static_cast<ssize_t>(2 * kUnit));
    EXPECT_EQ(pwrite(holed_, second_.expected() + 3 * kUnit, kUnit, 3 * kUnit), static_cast<ssize_t>(kUnit));
    expected_.resize(kUnits * kUnit);
    std::memcpy(expected_.data(), first_.expected(), 2 * kUnit);
    std::memcpy(expected_.data() + 3 * kUnit, second_.expected() + kUnit, kUnit);
    std::memcpy(expected_.data() + 5 * kUnit, second_.expected() + 3 * kUnit, kUnit);
  }
  ~Mixed() {
    close(holed_);
    unlink(holed_path_.c_str());
  }
  static constexpr size_t kUnits = 7;
  std::vector<FileImage> pieces() const {
    return {{first_.fd(), kUnit, kUnit}, {first_.fd(), 2 * kUnit, kUnit}, {kNoFile, 99, kUnit},
            {holed_, kUnit, kUnit},      {holed_, 2 * kUnit, kUnit},      {holed_, 3 * kUnit, kUnit},
            {kNoFile, 0, kUnit}};
  }
  const std::vector<uint8_t>& expected() const { return expected_; }

 private:
  TestFile first_;
  TestFile second_;
  std::string holed_path_;
  int holed_ = -1;
  std::vector<uint8_t> expected_;
};

std::unique_ptr<Region> region_on(std::span<const FileImage> pieces, size_t commit) {
  auto region = Region::create_on_file(pieces, 64 * kUnit, os_page_bytes(), commit);
  EXPECT_TRUE(region.is_ok()) << region.status().to_string();
  return std::move(region).value();
}

TEST(Pieces, LieOneAfterTheOther) {
  const Mixed mixed;
  auto region = region_on(mixed.pieces(), 9 * kUnit);
  EXPECT_EQ(region->image_bytes(), Mixed::kUnits * kUnit);
  EXPECT_EQ(region->committed_bytes(), 9 * kUnit);
  EXPECT_EQ(std::memcmp(region->base(), mixed.expected().data(), mixed.expected().size()), 0);
  EXPECT_TRUE(is_zero(region->base() + 7 * kUnit, 2 * kUnit));
  ASSERT_TRUE(region->commit(10 * kUnit).is_ok());
  std::memset(region->base(), 0x77, 10 * kUnit);
  auto again = region_on(mixed.pieces(), 7 * kUnit);
  EXPECT_EQ(std::memcmp(again->base(), mixed.expected().data(), mixed.expected().size()), 0);
}

TEST(Pieces, OfOneFileThatAreNeighboursAreOneMapping) {
  if (!std::filesystem::exists("/proc/self/maps")) GTEST_SKIP() << "this system does not list mappings";
  const Mixed mixed;
  auto region = region_on(mixed.pieces(), 9 * kUnit);
  std::ifstream maps("/proc/self/maps");
  size_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    const uint8_t* begin = reinterpret_cast<const uint8_t*>(std::stoull(line, nullptr, 16));
    if (begin >= region->base() && begin < region->base() + 9 * kUnit) ++found;
  }
  EXPECT_EQ(found, 4u) << "a file, zeros, a file, zeros";
}

TEST(Pieces, ThatAreNothingOrAllZeroAreAllowed) {
  auto none = region_on({}, kUnit);
  EXPECT_EQ(none->image_bytes(), 0u);
  const FileImage zeros[] = {{kNoFile, 0, kUnit}, {7777, 0, 0}, {kNoFile, 0, kUnit}};
  auto region = region_on(zeros, 2 * kUnit);
  EXPECT_EQ(region->image_bytes(), 2 * kUnit);
  EXPECT_TRUE(is_zero(region->base(), 2 * kUnit));
  region->base()[kUnit] = 1;
  const std::vector<ByteRange> expected = {{kUnit, os_page_bytes()}};
  EXPECT_EQ(region->dirty_pages().value(), expected);
  EXPECT_EQ(region->dirty_pages(DirtySource::kCompare).value(), expected) << "needs no base";
}

TEST(Pieces, ThatAreBadAreRefusedByNumber) {
  const Mixed mixed;
  std::vector<FileImage> pieces = mixed.pieces();
  const auto refused = [&](Code code, const char* text, size_t commit = 9 * kUnit) {
    auto region = Region::create_on_file(pieces, 64 * kUnit, 0, commit);
    EXPECT_EQ(region.status().code(), code) << region.status().to_string();
    EXPECT_NE(region.status().message().find(text), std::string::npos) << region.status().message();
    pieces = mixed.pieces();
  };
  pieces[3].offset += os_page_bytes();
  refused(Code::kInvalidArgument, "image piece 3 begins at offset");
  pieces[4].length -= 1;
  refused(Code::kInvalidArgument, "image piece 4 of 65535 bytes: not whole pages");
  refused(Code::kInvalidArgument, "image piece 6 of 65536 bytes at 393216 is past the end", 6 * kUnit);
  pieces[5].length = SIZE_MAX - os_page_bytes() + 1;
  refused(Code::kInvalidArgument, "image piece 5 of");
  pieces[5].offset = 4 * kUnit;
  refused(Code::kDataLoss, "image piece 5: image file has 262144 bytes");
  pieces[5].length += kUnit;
  pieces[5].offset = 3 * kUnit;
  refused(Code::kDataLoss, "image pieces 3 to 5: image file has 262144 bytes");
  pieces[0].fd = -7;
  refused(Code::kUnavailable, "image piece 0: ");
}

class DirtyPieces : public testing::TestWithParam<DirtySource> {};

TEST_P(DirtyPieces, AreExactlyThoseWrittenOfEveryKind) {
  const Mixed mixed;
  const std::vector<FileImage> pieces = mixed.pieces();
  const size_t page = os_page_bytes();
  auto region = region_on(pieces, 9 * kUnit);
  if (GetParam() != DirtySource::kCompare && !region->dirty_pages(GetParam()).is_ok()) {
    GTEST_SKIP() << region->dirty_pages(GetParam()).status().to_string();
  }
  volatile uint8_t sum = 0;
  for (size_t at = 0; at < 9 * kUnit; at += page) sum = static_cast<uint8_t>(sum + region->base()[at]);
  EXPECT_TRUE(region->dirty_pages(GetParam(), pieces).value().empty()) << "reading is not writing";
  std::vector<ByteRange> expected;
  const auto write = [&](size_t offset, size_t length) {
    for (size_t at = offset; at < offset + length; at += page) region->base()[at + 11] ^= 0x40;
    append_range(&expected, offset, length);
  };
  write(page, page);                      // a file
  write(2 * kUnit - page, 2 * page);      // its end and the zeros after it
  write(3 * kUnit - page, 3 * page);      // zeros and the other file
  write(4 * kUnit + 2 * page, 2 * page);  // a hole of a file
  write(5 * kUnit - page, 2 * kUnit);     // hole, file, zeros
  write(7 * kUnit - page, 2 * page);      // zeros among the pieces and after them
  write(9 * kUnit - page, page);
  // What was written with zeros where zeros were is as it began.
  std::memset(region->base() + 8 * kUnit, 0, page);
  EXPECT_EQ(region->dirty_pages(GetParam(), pieces).value(), expected);
}

std::string source_name(const testing::TestParamInfo<DirtySource>& info) {
  constexpr const char* kNames[] = {"Best", "Scan", "PageMap", "Compare"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Sources, DirtyPieces,
                         testing::Values(DirtySource::kBest, DirtySource::kScan, DirtySource::kPageMap,
                                         DirtySource::kCompare),
                         source_name);

}  // namespace
}  // namespace driftwood::region
