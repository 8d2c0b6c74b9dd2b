// Blocks from files: their life cycle, what is mapped when, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "region/temporary_file_for_test.h"

namespace driftwood::kv {
namespace {

using region::FileImage;

constexpr int64_t kBlock = 65536;

class BlockFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < saved_.size(); ++i) saved_[i] = static_cast<uint8_t>(1 + i / 4096 * 7 + i % 97);
    ASSERT_TRUE(file_.write_at(0, saved_));
    if (file_.mappings() < 0) GTEST_SKIP() << "this system does not tell what is mapped";
  }
  std::unique_ptr<BlockPool> pool_of(int64_t blocks, FileUse use = FileUse::kMap) {
    return std::move(*BlockPool::create(*KvLayout::create(2, 2, 32, DType::kF16), blocks * kBlock, use));
  }
  std::vector<int32_t> allocated(BlockPool* pool, int64_t count) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < count; ++i) ids.push_back(*pool->allocate());
    return ids;
  }
  FileImage image(uint64_t block) const { return {file_.fd(), block * kBlock, kBlock}; }
  const uint8_t* saved(int64_t block) const { return saved_.data() + block * kBlock; }
  bool holds(BlockPool* pool, int32_t id, int64_t block) const {
    return std::memcmp(pool->block(id), saved(block), kBlock) == 0;
  }
  static bool is_zero(BlockPool* pool, int32_t id) {
    const uint8_t* bytes = pool->block(id);
    return std::all_of(bytes, bytes + kBlock, [](uint8_t b) { return b == 0; });
  }

  region::TemporaryFile file_;
  std::vector<uint8_t> saved_ = std::vector<uint8_t>(6 * kBlock);
};

TEST_F(BlockFiles, NeighboursAreOneMapping) {
  auto pool = pool_of(8);
  const auto ids = allocated(pool.get(), 4);
  const FileImage images[] = {image(1), image(2), image(3), image(4)};
  ASSERT_TRUE(pool->load_files(ids, images, 100).is_ok());
  EXPECT_EQ(pool->mapped(), 4);
  EXPECT_EQ(file_.mappings(), 1);
  for (int32_t i = 0; i < 4; ++i) EXPECT_TRUE(holds(pool.get(), ids[i], i + 1)) << i;
  pool->release(ids);
  EXPECT_EQ(pool->mapped(), 0);
  EXPECT_EQ(file_.mappings(), 0);
  EXPECT_EQ(pool->in_use(), 0);
  for (int32_t id : allocated(pool.get(), 4)) EXPECT_TRUE(is_zero(pool.get(), id)) << id;
}

TEST_F(BlockFiles, StrangersAreMappedOneByOne) {
  auto pool = pool_of(8);
  auto ids = allocated(pool.get(), 4);
  pool->release(std::vector<int32_t>{ids[1]});
  ids.erase(ids.begin() + 1);  // 0, 2, 3
  const FileImage images[] = {image(5), image(3), image(2)};
  ASSERT_TRUE(pool->load_files(ids, images, 96).is_ok());
  EXPECT_EQ(file_.mappings(), 3);
  EXPECT_TRUE(holds(pool.get(), 0, 5));
  EXPECT_TRUE(holds(pool.get(), 2, 3));
  EXPECT_TRUE(holds(pool.get(), 3, 2));
  pool->release(2);
  EXPECT_EQ(file_.mappings(), 2);
  EXPECT_EQ(pool->mapped(), 2);
  EXPECT_EQ(*pool->allocate(), 1);
  EXPECT_EQ(*pool->allocate(), 2);
  EXPECT_TRUE(is_zero(pool.get(), 2)) << "a later owner gets memory of no file";
  EXPECT_TRUE(holds(pool.get(), 0, 5));
  EXPECT_TRUE(holds(pool.get(), 3, 2));
}

TEST_F(BlockFiles, AReferenceKeepsTheMapping) {
  auto pool = pool_of(4);
  const auto ids = allocated(pool.get(), 2);
  const FileImage images[] = {image(0), image(1)};
  ASSERT_TRUE(pool->load_files(ids, images, 64).is_ok());
  pool->retain(ids[1]);
  pool->release(ids);
  EXPECT_EQ(pool->mapped(), 1);
  EXPECT_EQ(pool->in_use(), 1);
  EXPECT_TRUE(holds(pool.get(), ids[1], 1));
  pool->release(ids[1]);
  EXPECT_EQ(file_.mappings(), 0);
}

TEST_F(BlockFiles, WritesAndCopiesLeaveTheFileAlone) {
  auto pool = pool_of(4);
  const auto ids = allocated(pool.get(), 1);
  const FileImage images[] = {image(2)};
  ASSERT_TRUE(pool->load_files(ids, images, 20).is_ok());
  const int32_t copy = *pool->allocate();
  pool->copy(ids[0], copy);
  const auto payload = static_cast<size_t>(pool->layout().token_bytes() * kKvBlockTokens);
  EXPECT_EQ(std::memcmp(pool->block(copy), saved(2), payload), 0);
  EXPECT_TRUE(std::all_of(pool->block(copy) + payload, pool->block(copy) + kBlock, [](uint8_t b) {
    return b == 0;
  })) << "padding stays zero whatever a file has there";
  pool->zero_past(ids[0], 0);
  EXPECT_TRUE(is_zero(pool.get(), ids[0]));
  EXPECT_EQ(file_.bytes(), saved_);
  pool->load(ids[0], {saved(4), kBlock}, 32);
  EXPECT_EQ(std::memcmp(pool->block(ids[0]), saved(4), payload), 0);
  EXPECT_EQ(file_.bytes(), saved_);
}

TEST_F(BlockFiles, HolesAreZeroWhateverWasThere) {
  for (const FileUse use : {FileUse::kMap, FileUse::kRead}) {
    auto pool = pool_of(4, use);
    const auto ids = allocated(pool.get(), 3);
    for (int32_t id : ids) std::memset(pool->block(id), 0x5a, kBlock);
    const FileImage images[] = {{-1, 0, kBlock}, {-1, 0, kBlock}, image(3)};
    ASSERT_TRUE(pool->load_files(ids, images, 96).is_ok());
    EXPECT_TRUE(is_zero(pool.get(), ids[0]));
    EXPECT_TRUE(is_zero(pool.get(), ids[1]));
    const auto payload = static_cast<size_t>(pool->layout().token_bytes() * kKvBlockTokens);
    EXPECT_EQ(std::memcmp(pool->block(ids[2]), saved(3), payload), 0);
    EXPECT_EQ(pool->mapped(), use == FileUse::kMap ? 1 : 0);
    pool->release(ids);
  }
}

TEST_F(BlockFiles, WhereMappingIsNotAllowedTheyAreReadAndCleaned) {
  auto pool = pool_of(4, FileUse::kRead);
  const auto ids = allocated(pool.get(), 2);
  const FileImage images[] = {image(1), image(2)};
  ASSERT_TRUE(pool->load_files(ids, images, 32 + 9).is_ok());
  EXPECT_EQ(pool->mapped(), 0);
  EXPECT_EQ(file_.mappings(), 0);
  std::vector<uint8_t> expected(saved(1), saved(1) + 2 * kBlock);
  pool->layout().zero_tokens_from(expected.data(), 32);
  pool->layout().zero_tokens_from(expected.data() + kBlock, 9);
  EXPECT_EQ(std::memcmp(pool->block(ids[0]), expected.data(), expected.size()), 0);
}

TEST_F(BlockFiles, RefusesBadImagesByTheirNumberAndChangesNothing) {
  for (const FileUse use : {FileUse::kMap, FileUse::kRead}) {
    auto pool = pool_of(4, use);
    const auto ids = allocated(pool.get(), 2);
    for (int32_t id : ids) std::memset(pool->block(id), 0x5a, kBlock);
    const auto refused = [&](const FileImage& second, Code code, const std::string& words) {
      const FileImage images[] = {image(0), second};
      const Status status = pool->load_files(ids, images, 64);
      EXPECT_EQ(status.code(), code) << status.to_string();
      EXPECT_NE(status.message().find("KV block 1"), std::string::npos) << status.message();
      EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
      EXPECT_EQ(pool->block(ids[0])[0], 0x5a);
      EXPECT_EQ(pool->block(ids[1])[kBlock - 1], 0x5a);
      EXPECT_EQ(pool->mapped(), 0);
    };
    refused({file_.fd(), 0, kBlock - 4096}, Code::kInvalidArgument, "61440 bytes");
    refused({-1, 0, 2 * kBlock}, Code::kInvalidArgument, "131072 bytes");
    refused({file_.fd(), 4096, kBlock}, Code::kInvalidArgument, "offset 4096");
    refused({file_.fd(), 6 * kBlock, kBlock}, Code::kDataLoss, "393216 bytes");
    refused({file_.fd(), ~uint64_t{0} - 65535, kBlock}, Code::kDataLoss, "393216 bytes");
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    refused({ends[0], 0, kBlock}, Code::kInvalidArgument, "no regular file");
    close(ends[0]);
    close(ends[1]);
    pool->release(ids);
  }
}

// The descriptor of the second block can't be read through, which shows only when it is used.
TEST_F(BlockFiles, AFailureHalfWayLeavesBlocksThatCanBeReleased) {
  for (const FileUse use : {FileUse::kMap, FileUse::kRead}) {
    auto pool = pool_of(4, use);
    const auto ids = allocated(pool.get(), 2);
    const FileImage images[] = {image(0), {file_.write_only_fd(), kBlock, kBlock}};
    const Status status = pool->load_files(ids, images, 64);
    EXPECT_FALSE(status.is_ok());
    EXPECT_NE(status.message().find("KV block 1"), std::string::npos) << status.message();
    pool->release(ids);
    EXPECT_EQ(pool->mapped(), 0);
    EXPECT_EQ(pool->in_use(), 0);
    EXPECT_EQ(file_.mappings(), 0);
  }
}

TEST_F(BlockFiles, ATableWritesIntoAMappedBlockOfItsOwnAndCopiesASharedOne) {
  auto pool = pool_of(8);
  BlockTable table(200);
  ASSERT_TRUE(table.prepare(pool.get(), 0, 40).is_ok());
  const FileImage images[] = {image(0), image(1)};
  ASSERT_TRUE(pool->load_files({table.ids(), 2}, images, 40).is_ok());
  BlockTable fork(200);
  fork.fork_from(pool.get(), table, 40);
  ASSERT_TRUE(fork.prepare(pool.get(), 40, 41).is_ok());
  EXPECT_NE(fork.ids()[1], table.ids()[1]);
  EXPECT_EQ(pool->mapped(), 2);
  ASSERT_TRUE(table.prepare(pool.get(), 40, 41).is_ok());
  pool->block(table.ids()[1])[16] = 0;  // token 8 of the first row
  EXPECT_EQ(pool->block(fork.ids()[1])[16], saved(1)[16]);
  EXPECT_EQ(file_.bytes(), saved_);
  table.truncate(pool.get(), 32);
  EXPECT_EQ(pool->mapped(), 1);
  table.clear(pool.get());
  EXPECT_EQ(pool->mapped(), 1) << "the fork has it";
  fork.clear(pool.get());
  EXPECT_EQ(file_.mappings(), 0);
  EXPECT_EQ(pool->in_use(), 0);
}

TEST_F(BlockFiles, AThousandTimesLeaveNothing) {
  auto pool = pool_of(8);
  const FileImage images[] = {image(0), image(1), image(4), image(5)};
  int before = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto ids = allocated(pool.get(), 4);
    ASSERT_TRUE(pool->load_files(ids, images, 128).is_ok());
    pool->block(ids[i % 4])[5] ^= 1;
    pool->release(std::vector<int32_t>{ids[2], ids[0], ids[3], ids[1]});
    if (i == 0) before = region::count_mappings();
  }
  EXPECT_EQ(pool->mapped(), 0);
  EXPECT_EQ(file_.mappings(), 0);
  // Less a few that other threads' heaps may take.
  EXPECT_LE(region::count_mappings(), before + 4);
  EXPECT_EQ(file_.bytes(), saved_);
}

}  // namespace
}  // namespace driftwood::kv
