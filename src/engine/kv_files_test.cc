// Sessions whose KV lies in files: what thaw() maps, who shares it, what is refused, what is left behind.
#include <gtest/gtest.h>

#include <functional>

#include "engine/continuity.h"
#include "engine/fixture_models_test.h"
#include "engine/kv_file_for_test.h"
#include "region/region.h"

namespace driftwood::engine::testing {
namespace {

void expect_error(const Status& status, Code code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status.to_string();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

std::vector<int32_t> counting(int32_t first, int32_t count) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back((first + 7 * i) % 320);
  return ids;
}

class KvFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = fixture_model("llama3");
    if (path.empty()) GTEST_SKIP() << "no fixture model llama3: DRIFTWOOD_FIXTURE_MODELS is not set";
    if (region::count_mappings() < 0) GTEST_SKIP() << "this system does not tell what is mapped";
    opened_ = open(load(path), {available_isas().back(), 1, {}});
    ASSERT_NE(opened_.engine, nullptr);
  }
  Engine& engine() { return *opened_.engine; }
  EngineStats stats() { return engine().stats(); }

  void advance(SessionId session, const std::vector<int32_t>& ids) {
    ASSERT_TRUE(engine().append(session, ids).is_ok());
    ASSERT_TRUE(engine().step(session).is_ok());
  }
  SessionId session_of(const std::vector<int32_t>& ids) {
    const SessionId session = open_session(engine(), {256, {}});
    advance(session, ids);
    return session;
  }
  SessionId thawed(const FrozenSession& frozen) {
    const auto session = engine().thaw(frozen);
    EXPECT_TRUE(session.is_ok()) << session.status().message();
    return session.is_ok() ? *session : 0;
  }
  // KV in memory of its own.
  FrozenSession copied(SessionId session) {
    FrozenSession copy = std::move(*engine().freeze(session));
    copy_kv(&copy);
    return copy;
  }
  // The same session twice, KV in memory and in a file, and no longer in the engine.
  void prepare(int32_t tokens) {
    const SessionId session = session_of(counting(1, tokens));
    in_memory_ = copied(session);
    in_file_ = *move_kv_to_file(in_memory_, 131072);
    ASSERT_TRUE(engine().close(session).is_ok());
    bytes_ = file().bytes();
  }
  const region::TemporaryFile& file() { return file_of(in_file_); }
  void close(SessionId session) { ASSERT_TRUE(engine().close(session).is_ok()); }

  Opened opened_;
  FrozenSession in_memory_;
  FrozenSession in_file_;
  std::vector<uint8_t> bytes_;
};

TEST_F(KvFiles, AreMappedUntilTheSessionGoes) {
  prepare(100);
  EXPECT_EQ(in_file_.kv_bytes(), in_memory_.kv_bytes());
  const SessionId session = thawed(in_file_);
  EXPECT_EQ(stats().kv_blocks_mapped, 4);
  EXPECT_EQ(stats().kv_blocks_in_use, 4);
  EXPECT_EQ(file().mappings(), 1);
  EXPECT_EQ(first_difference(in_memory_, *engine().freeze(session)), "");
  ASSERT_TRUE(engine().truncate(session, 64).is_ok());
  EXPECT_EQ(stats().kv_blocks_mapped, 2);
  EXPECT_EQ(file().mappings(), 1);
  close(session);
  EXPECT_EQ(stats().kv_blocks_mapped, 0);
  EXPECT_EQ(stats().kv_blocks_in_use, 0);
  EXPECT_EQ(file().mappings(), 0);
}

TEST_F(KvFiles, WritingIntoAMappedBlockLeavesTheFileAlone) {
  prepare(100);
  for (const int64_t length : {100, 96, 90, 40, 1, 0}) {
    const SessionId mapped = thawed(in_file_);
    const SessionId plain = thawed(in_memory_);
    for (const SessionId session : {mapped, plain}) {
      ASSERT_TRUE(engine().truncate(session, length).is_ok());
      advance(session, counting(50, 30));
    }
    EXPECT_EQ(first_difference(copied(plain), copied(mapped)), "") << "cut to " << length;
    close(mapped);
    close(plain);
  }
  EXPECT_EQ(file().bytes(), bytes_);
  EXPECT_EQ(file().mappings(), 0);
}

TEST_F(KvFiles, TwoSessionsOnOneFileGoTheirWays) {
  prepare(70);
  const SessionId plain = thawed(in_memory_);
  const SessionId first = thawed(in_file_);
  const SessionId second = thawed(in_file_);
  EXPECT_EQ(file().mappings(), 2);
  const SessionId fork = *engine().fork(second, 0);
  advance(first, counting(200, 40));
  advance(second, counting(60, 5));
  advance(plain, counting(60, 5));
  EXPECT_EQ(first_difference(copied(plain), copied(second)), "");
  EXPECT_EQ(first_difference(in_memory_, copied(fork)), "");
  close(first);
  close(second);
  EXPECT_EQ(stats().kv_blocks_mapped, 3) << "the fork's";
  advance(fork, counting(60, 5));
  EXPECT_EQ(first_difference(copied(plain), copied(fork)), "");
  close(fork);
  EXPECT_EQ(file().mappings(), 0);
  EXPECT_EQ(file().bytes(), bytes_);
}

TEST_F(KvFiles, OutliveTheirDescriptorsAndStayPinned) {
  prepare(70);
  const auto file = in_file_.kv_owner;
  const auto& left = *static_cast<const region::TemporaryFile*>(file.get());
  const SessionId session = thawed(in_file_);
  {
    FrozenSession pinned = std::move(*engine().freeze(session));
    EXPECT_EQ(pinned.kv_files.size(), 0u);
    close(session);
    EXPECT_EQ(stats().kv_blocks_mapped, 2) << "the full ones";
    EXPECT_EQ(left.mappings(), 1);
    EXPECT_EQ(first_difference(in_memory_, pinned), "");
    const SessionId again = thawed(pinned);
    EXPECT_EQ(stats().kv_blocks_mapped, 2);
    close(again);
    opened_.engine.reset();
    EXPECT_EQ(first_difference(in_memory_, pinned), "") << "without its engine";
  }
  EXPECT_EQ(left.mappings(), 0);
}

TEST_F(KvFiles, HolesAreZeros) {
  prepare(100);
  FrozenSession zeros = in_memory_;
  const std::vector<uint8_t> zero(static_cast<size_t>(zeros.block_bytes));
  for (const size_t i : {1u, 2u}) zeros.kv_blocks[i] = zero;
  FrozenSession holes = in_file_;
  for (const size_t i : {1u, 2u}) holes.kv_files[i] = {-1, 0, static_cast<size_t>(zeros.block_bytes)};
  close(session_of(counting(9, 128)));  // leaves its bytes in the blocks
  const SessionId with_holes = thawed(holes);
  EXPECT_EQ(stats().kv_blocks_mapped, 2);
  EXPECT_EQ(first_difference(zeros, copied(with_holes)), "");
  const SessionId plain = thawed(zeros);
  for (const SessionId session : {with_holes, plain}) advance(session, counting(3, 2));
  EXPECT_EQ(first_difference(copied(plain), copied(with_holes)), "");
}

TEST_F(KvFiles, CanBeReadIntoMemory) {
  prepare(70);
  FrozenSession read = in_file_;
  EXPECT_NE(first_difference(in_memory_, read), "") << "KV that was not looked at is equal to nothing";
  ASSERT_TRUE(read_kv(&read).is_ok());
  EXPECT_EQ(first_difference(in_memory_, read), "");
  EXPECT_TRUE(read.kv_files.empty());
  ASSERT_TRUE(file().cut(bytes_.size() - 1));
  FrozenSession cut = in_file_;
  expect_error(read_kv(&cut), Code::kDataLoss, "KV block 2");
  EXPECT_EQ(cut.kv_files.size(), 3u);
}

TEST_F(KvFiles, AThousandTimesLeaveNothing) {
  prepare(40);
  int mappings = 0;
  size_t resident = 0;
  for (int i = 0; i < 1000; ++i) {
    const SessionId session = thawed(in_file_);
    if (i % 4 == 0) advance(session, {5});
    close(session);
    if (i != 100) continue;  // everything that is made once is there
    mappings = region::count_mappings();
    resident = region::process_residency()->rss_bytes;
  }
  EXPECT_LE(region::count_mappings(), mappings + 4) << "less a few of heaps";
  EXPECT_LE(region::process_residency()->rss_bytes, resident + (size_t{1} << 20));
  EXPECT_EQ(file().mappings(), 0);
  EXPECT_EQ(stats().kv_blocks_in_use, 0);
  EXPECT_EQ(stats().kv_blocks_mapped, 0);
}

TEST_F(KvFiles, AreRefusedByBlockAndValueBeforeAnythingChanges) {
  prepare(70);
  const int64_t block = in_file_.block_bytes;
  const SessionId neighbour = session_of(counting(4, 40));
  const FrozenSession untouched = copied(neighbour);
  const int64_t in_use = stats().kv_blocks_in_use;
  using Change = std::function<void(FrozenSession&)>;
  const auto refused = [&](const Change& change, Code code, const std::string& words) {
    FrozenSession bad = in_file_;
    change(bad);
    expect_error(engine().thaw(bad).status(), code, words);
    EXPECT_EQ(stats().kv_blocks_in_use, in_use) << words;
    EXPECT_EQ(stats().kv_blocks_mapped, 0) << words;
    EXPECT_EQ(file().mappings(), 0) << words;
  };
  constexpr Code kBad = Code::kInvalidArgument;
  refused([&](FrozenSession& s) { s.kv_blocks = in_memory_.kv_blocks; }, kBad,
          "3 KV blocks in memory and 3 in files");
  refused([&](FrozenSession& s) { s.kv_files.pop_back(); }, kBad, "2 KV blocks, 70 tokens take 3");
  refused([&](FrozenSession& s) { s.kv_files.push_back(s.kv_files[0]); }, kBad, "4 KV blocks");
  refused([&](FrozenSession& s) { s.kv_files[1].length -= 4096; }, kBad,
          "KV block 1 has " + std::to_string(block - 4096) + " bytes in its file");
  refused([&](FrozenSession& s) { s.kv_files[0].length = 0; }, kBad, "KV block 0 has 0 bytes");
  refused([&](FrozenSession& s) { s.kv_files[2] = {-1, 0, 1}; }, kBad, "KV block 2 has 1 bytes");
  refused([&](FrozenSession& s) { s.kv_files[2].offset += 4096; }, kBad, "KV block 2 begins at offset");
  refused([&](FrozenSession& s) { s.kv_files[1].offset = uint64_t{1} << 40; }, Code::kDataLoss,
          "KV block 1: image file has " + std::to_string(bytes_.size()) + " bytes");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  refused([&](FrozenSession& s) { s.kv_files[1].fd = ends[0]; }, kBad, "KV block 1");
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(first_difference(untouched, copied(neighbour)), "");

  ASSERT_TRUE(file().cut(bytes_.size() - 1));
  refused([](FrozenSession&) {}, Code::kDataLoss, "KV block 2");
}

TEST_F(KvFiles, AFailureHalfWayLeavesNoSession) {
  prepare(70);
  FrozenSession unreadable = in_file_;
  unreadable.kv_files[1].fd = file().write_only_fd();  // shows when it is mapped
  const auto session = engine().thaw(unreadable);
  ASSERT_FALSE(session.is_ok());
  EXPECT_NE(session.status().message().find("KV block 1"), std::string::npos) << session.status().message();
  EXPECT_EQ(stats().kv_blocks_in_use, 0);
  EXPECT_EQ(stats().kv_blocks_mapped, 0);
  EXPECT_EQ(file().mappings(), 0);
  close(thawed(in_file_));
}

// Room for the forks' tokens and tables is reserved, and must not be touched.
TEST_F(KvFiles, ForksCostLittleUntilTheyWrite) {
  constexpr int64_t kForks = 1000;
  constexpr int64_t kMost = 128;
  const SessionId parent = open_session(engine(), {kMost, {}});
  advance(parent, counting(1, 100));
  const size_t before = region::process_residency()->rss_bytes;
  std::vector<SessionId> forks;
  for (int64_t i = 0; i < kForks; ++i) forks.push_back(*engine().fork(parent, 1));
  const size_t each = (region::process_residency()->rss_bytes - before) / kForks;
  EXPECT_LE(each, 4096u);
  EXPECT_EQ(stats().kv_blocks_in_use, 4);
  for (const SessionId id : forks) close(id);
}

}  // namespace
}  // namespace driftwood::engine::testing
