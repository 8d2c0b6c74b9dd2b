#include "weights/weight_stream.h"

#include <cstring>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "os/page_cache.h"
#include "os/temporary_folder.h"

namespace driftwood::weights {
namespace {

constexpr int64_t kCols = 1024;

// A file of f32 matrices whose words count up, and stages of one to three of them.
class WeightStreamTest : public ::testing::Test {
 protected:
  static constexpr size_t kStages = 40;

  void SetUp() override {
    auto folder = os::TemporaryFolder::create("dw_stream_");
    ASSERT_TRUE(folder.is_ok()) << folder.status().message();
    folder_ = std::move(*folder);
    std::vector<std::vector<int64_t>> rows(kStages);
    size_t bytes = 0;
    for (size_t i = 0; i < kStages; ++i) {
      for (size_t m = 0; m < 1 + i % 3; ++m) {
        rows[i].push_back(16 * static_cast<int64_t>(1 + random_u64(3, i, m, 0) % 12));
        bytes += static_cast<size_t>(rows[i].back() * kCols) * 4;
      }
    }
    open_file(bytes);
    const uint8_t* at = file_->bytes().data();
    for (const auto& stage : rows) {
      auto& matrices = stages_.emplace_back();
      for (const int64_t r : stage) {
        PackedMatrix m;
        m.rows = r;
        m.cols = kCols;
        m.data = at;
        at += m.size_bytes();
        total_ += static_cast<int64_t>(m.size_bytes());
        matrices.push_back(m);
      }
    }
  }

  void open_file(size_t bytes) {
    const std::string path = folder_->path() + "/weights";
    std::vector<uint32_t> words(bytes / 4);
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761u);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(bytes));
    auto file = os::MappedFile::open(path, {.keep_descriptor = true});
    ASSERT_TRUE(file.is_ok()) << file.status().message();
    file_ = std::move(*file);
  }

  std::unique_ptr<WeightStream> open(WeightStream::Budget budget) {
    return std::make_unique<WeightStream>(file_, stages_, std::move(budget), &figures_);
  }

  // Whether all of it lay elsewhere than in the mapping.
  bool expect_right(WeightStream& stream, size_t stage) {
    const auto places = stream.reach(stage);
    EXPECT_EQ(places.size(), stages_[stage].size());
    bool moved = true;
    for (size_t i = 0; i < places.size(); ++i) {
      const PackedMatrix& m = stages_[stage][i];
      EXPECT_EQ(std::memcmp(places[i], m.data, m.size_bytes()), 0) << "stage " << stage << " matrix " << i;
      moved = moved && places[i] != m.data;
    }
    return moved;
  }

  std::unique_ptr<os::TemporaryFolder> folder_;
  std::shared_ptr<const os::MappedFile> file_;
  std::vector<std::vector<PackedMatrix>> stages_;
  int64_t total_ = 0;
  StreamFigures figures_;
};

TEST_F(WeightStreamTest, WhatFitsStaysWhereItIs) {
  const auto stream = open([this](int64_t) { return total_; });
  for (size_t i = 0; i < kStages; ++i) EXPECT_FALSE(expect_right(*stream, i));
  EXPECT_EQ(figures_.streamed_bytes, 0);
}

TEST_F(WeightStreamTest, PassesInOrder) {
  const auto stream = open([this](int64_t) { return total_ * 3 / 4; });
  EXPECT_GT(figures_.kept_bytes, 0);
  EXPECT_LE(figures_.kept_bytes, total_ * 3 / 4);
  EXPECT_EQ(figures_.kept_bytes + figures_.streamed_bytes, total_);
  for (int pass = 0; pass < 20; ++pass) {
    int64_t moved = 0;
    for (size_t i = 0; i < kStages; ++i) {
      if (!expect_right(*stream, i)) continue;
      for (const PackedMatrix& m : stages_[i]) moved += static_cast<int64_t>(m.size_bytes());
    }
    EXPECT_EQ(moved, figures_.streamed_bytes);
  }
}

// Stages are left out, passes are broken off, memory comes and goes.
TEST_F(WeightStreamTest, AnyOrder) {
  int64_t budget = 0;
  auto stream = open([&](int64_t) { return budget; });
  for (uint64_t i = 0; i < 3000; ++i) {
    if (i % 500 == 499) {  // a stream asks once a second: a new one asks at once
      stream.reset();
      EXPECT_FALSE(figures_.open);
      budget = static_cast<int64_t>(random_u64(5, i, 0, 0) % static_cast<uint64_t>(total_ * 5 / 4));
      figures_.open = true;
      stream = open([&](int64_t) { return budget; });
    }
    expect_right(*stream, random_u64(5, i, 1, 0) % kStages);
  }
}

TEST_F(WeightStreamTest, FollowsMemory) {
  std::atomic<int64_t> budget = total_;
  const auto stream = open([&](int64_t) { return budget.load(); });
  const auto pass_until = [&](bool streams) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while ((figures_.streamed_bytes > 0) != streams && std::chrono::steady_clock::now() < end) {
      for (size_t i = 0; i < kStages; ++i) expect_right(*stream, i);
    }
    return (figures_.streamed_bytes > 0) == streams;
  };
  EXPECT_TRUE(pass_until(false));
  budget = total_ / 2;
  EXPECT_TRUE(pass_until(true));
  budget = total_;
  EXPECT_TRUE(pass_until(false));
  for (size_t i = 0; i < kStages; ++i) EXPECT_FALSE(expect_right(*stream, i));
}

// What cannot be read is left to the mapping, whose readers then learn why.
TEST_F(WeightStreamTest, ShortFile) {
  ASSERT_EQ(::truncate((folder_->path() + "/weights").c_str(), 4096), 0);
  const auto stream = open([](int64_t) { return 0; });
  const PackedMatrix& last = stages_.back().back();
  EXPECT_EQ(stream->reach(kStages - 1).back(), last.data);
}

TEST_F(WeightStreamTest, WhatPassesThroughLeavesTheCacheAlone) {
  const auto stream = open([](int64_t) { return 0; });
  os::give_up_range(file_->descriptor(), 0, file_->bytes().size(), file_->bytes().data());
  const uint64_t middle = file_->bytes().size() / 2;
  if (os::is_cached(file_->descriptor(), middle))
    GTEST_SKIP() << "this file system holds its files in memory";
  for (size_t i = 0; i < kStages; ++i) stream->reach(i);
  EXPECT_FALSE(os::is_cached(file_->descriptor(), middle));
}

}  // namespace
}  // namespace driftwood::weights
