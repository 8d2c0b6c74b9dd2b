// Live forks: children go on alone, parents notice nothing, and what is equal is shared.
#include <sys/resource.h>

#include "region/region.h"
#include "wasm/memory_for_test.h"

namespace driftwood::wasm {
namespace {

// A megabyte of which every byte is set.
std::unique_ptr<Instance> full_parent() {
  auto parent = fresh();
  DW_CHECK(call1(*parent, "grow", 14) == 2, "growing");
  for (uint64_t i = 256; i < parent->memory_bytes(); ++i) {
    parent->memory().base()[i] = static_cast<uint8_t>(i * 31 + i / 4096 + 1);
  }
  return parent;
}

void write_pages(Instance& guest, uint64_t first, uint64_t count, uint8_t value) {
  const uint64_t page = region::os_page_bytes();
  for (uint64_t i = first; i < first + count; ++i) guest.memory().base()[i * page + 300] ^= value;
}

TEST(Fork, OfAFreshGuestGoesOnAsItWould) {
  auto parent = fresh();
  run_steps(*parent, 9);
  auto child = fork_of(*parent);
  EXPECT_EQ(memory_of(*child), memory_of(*parent));
  EXPECT_EQ(child->wasmtime_memory_base(), child->memory().base());
  const Steps expected = run_steps(*parent, 50);
  EXPECT_TRUE(run_steps(*child, 50) == expected);
}

TEST(Fork, PatchesPointIntoTheParentWhileTheyAreFew) {
  const TwoFiles files;
  auto parent = files.instance();
  write_pages(*parent, 3, 2, 0x10);
  const FrozenMemory memory = std::move(parent->fork_memory()).value();
  ASSERT_EQ(memory.patches.size(), 1u);
  EXPECT_EQ(memory.patches[0].bytes.data(), parent->memory().base() + memory.patches[0].offset);
  EXPECT_EQ(memory.image.owner, files.image.owner);
  EXPECT_EQ(bytes_of(memory), memory_of(*parent));
}

TEST(Fork, ThreeGenerationsWriteIndependently) {
  for (const bool with_image : {false, true}) {
    auto parent = with_image ? full_parent() : fresh();
    if (with_image) {
      fork_of(*parent);
    }
    std::vector<std::unique_ptr<Instance>> line;
    std::vector<std::vector<uint8_t>> expected;
    line.push_back(std::move(parent));
    expected.push_back(memory_of(*line[0]));
    for (size_t generation = 1; generation <= 3; ++generation) {
      // Two children of each, so that siblings are told apart too.
      for (int i = 0; i < 2; ++i) {
        line.push_back(fork_of(*line[2 * generation - 2]));
        ASSERT_EQ(memory_of(*line.back()), expected[2 * generation - 2]);
        write_pages(*line.back(), line.size() * 2, 5, static_cast<uint8_t>(line.size()));
        expected.push_back(memory_of(*line.back()));
      }
      write_pages(*line[0], 20 + generation, 3, 0x77);  // children do not see what the first writes later
      expected[0] = memory_of(*line[0]);
    }
    for (size_t i = 0; i < line.size(); ++i) ASSERT_EQ(memory_of(*line[i]), expected[i]) << i;
    const Steps steps = run_steps(*line.back(), 20);
    auto last = std::move(line.back());
    line.pop_back();
    line.clear();  // parents go first
    EXPECT_EQ(memory_of(*last), steps.memory);
    EXPECT_EQ(memory_of(*fork_of(*last)), steps.memory);
  }
}

TEST(Fork, AnImageIsMadeOnceAndLaterForksPatchWhatChangedSince) {
  auto parent = full_parent();
  const std::vector<uint8_t> before = memory_of(*parent);
  const uint8_t* base = parent->memory().base();
  const FrozenMemory first = std::move(parent->fork_memory()).value();
  ASSERT_EQ(first.image.pieces.size(), 1u);
  EXPECT_TRUE(first.patches.empty());
  EXPECT_EQ(bytes_of(first), before);
  const uint64_t page = region::os_page_bytes();
  write_pages(*parent, 7, 2, 0x0f);
  write_pages(*parent, 100, 1, 0x0f);
  const FrozenMemory second = std::move(parent->fork_memory()).value();
  EXPECT_EQ(second.image.pieces[0].fd, first.image.pieces[0].fd);
  EXPECT_EQ(ranges_of(second), (std::vector<region::ByteRange>{{7 * page, 2 * page}, {100 * page, page}}));
  EXPECT_EQ(bytes_of(second), memory_of(*parent));
  write_pages(*parent, 7, 2, 0x0f);  // as it was
  EXPECT_EQ(patched_bytes(parent->fork_memory().value()), page);
  EXPECT_EQ(bytes_of(first), before) << "an image does not change";
  EXPECT_EQ(parent->memory().base(), base);
}

TEST(Fork, PagesThatBecameZeroSinceTheImageAreTold) {
  auto parent = full_parent();
  fork_of(*parent);
  const uint64_t page = region::os_page_bytes();
  std::memset(parent->memory().base() + 50 * page, 0, 2 * page);
  const FrozenMemory memory = std::move(parent->fork_memory()).value();
  EXPECT_EQ(ranges_of(memory), (std::vector<region::ByteRange>{{50 * page, 2 * page}}));
  auto child = revive(memory, parent->globals().value());
  EXPECT_EQ(memory_of(*child), memory_of(*parent));
  std::memset(child->memory().base() + 60 * page, 0, page);
  EXPECT_EQ(memory_of(*fork_of(*child)), memory_of(*child));
  EXPECT_EQ(bytes_of(child->freeze_memory().value()), memory_of(*child));
}

// Without a descriptor to spare nothing can be asked of the system and no image be made: all is copied.
TEST(Fork, WorksWhereNoImageCanBeMade) {
  auto parent = full_parent();
  std::vector<int> taken;
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few = {open_descriptors() + 8, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int fd = dup(0); fd >= 0; fd = dup(0)) taken.push_back(fd);
  auto none = parent->fork_memory();
  setrlimit(RLIMIT_NOFILE, &limit);
  for (const int fd : taken) close(fd);
  ASSERT_TRUE(none.is_ok()) << none.status().to_string();
  EXPECT_TRUE(none->image.pieces.empty());
  EXPECT_EQ(bytes_of(*none), memory_of(*parent));
  EXPECT_TRUE(parent->fork_memory()->patches.empty()) << "the next has an image";
}

TEST(Fork, AnImageIsMadeAnewWhenMuchWasWrittenSince) {
  auto parent = full_parent();
  const FrozenMemory first = std::move(parent->fork_memory()).value();
  const uint64_t pages = parent->memory_bytes() / region::os_page_bytes();
  write_pages(*parent, 0, pages / 2, 0x0f);
  auto child = revive(first, parent->globals().value());
  const FrozenMemory second = std::move(parent->fork_memory()).value();
  EXPECT_NE(second.image.owner, first.image.owner);
  EXPECT_TRUE(second.patches.empty());
  EXPECT_EQ(bytes_of(second), memory_of(*parent));
  EXPECT_EQ(memory_of(*child), bytes_of(first)) << "the old image lives as long as it is used";
}

TEST(Fork, ManyForksOfSomeWrittenPagesGetAnImageToo) {
  auto parent = fresh();
  ASSERT_EQ(call1(*parent, "grow", 14), 2u);
  write_pages(*parent, 1, 100 * 1024 / region::os_page_bytes(), 1);
  EXPECT_GT(patched_bytes(parent->fork_memory().value()), 64u << 10);
  for (int i = 0; i < 12; ++i) ASSERT_EQ(bytes_of(parent->fork_memory().value()), memory_of(*parent));
  EXPECT_EQ(patched_bytes(parent->fork_memory().value()), 0u);
}

TEST(Fork, GrowsOnPastTheImage) {
  auto parent = fresh();
  ASSERT_EQ(call1(*parent, "grow", 8), 2u);
  std::memset(parent->memory().base(), 0x21, parent->memory_bytes());
  fork_of(*parent);
  ASSERT_EQ(call1(*parent, "grow", 3), 10u);
  parent->memory().base()[12 * kUnit + 9] = 1;
  const FrozenMemory memory = std::move(parent->fork_memory()).value();
  EXPECT_EQ(memory.image.image_bytes(), 10 * kUnit);
  EXPECT_EQ(memory.image.memory_bytes, 13 * kUnit);
  EXPECT_EQ(patched_bytes(memory), region::os_page_bytes());
  auto child = revive(memory, parent->globals().value());
  EXPECT_EQ(memory_of(*child), memory_of(*parent));
  EXPECT_EQ(call1(*child, "grow", 3), 13u);
}

TEST(Fork, ImagesHaveLongZerosAsPieces) {
  auto module = std::move(load_text("(module (memory (export \"memory\") 160))")).value();
  auto parent = std::move(shared_runtime().instantiate(module, {}, {})).value();
  std::memset(parent->memory().base() + 5 * kUnit + 9, 1, 2 * kUnit);
  std::memset(parent->memory().base() + 60 * kUnit, 2, 20 * kUnit);
  const FrozenMemory memory = std::move(parent->fork_memory()).value();
  ASSERT_EQ(memory.image.pieces.size(), 3u);
  EXPECT_EQ(memory.image.pieces[0].length, 8 * kUnit);
  EXPECT_EQ(memory.image.pieces[1].fd, region::kNoFile);
  EXPECT_EQ(memory.image.image_bytes(), 80 * kUnit);
  struct stat info;
  ASSERT_EQ(fstat(memory.image.pieces[0].fd, &info), 0);
  EXPECT_LE(static_cast<uint64_t>(info.st_blocks) * 512, 23 * kUnit) << "zeros take room";
  EXPECT_EQ(bytes_of(memory), memory_of(*parent));
  EXPECT_EQ(memory_of(*revive(memory, {}, module)), memory_of(*parent));
}

TEST(Fork, ManyCyclesLeaveNothingBehind) {
  if (!std::filesystem::exists("/proc/self/fd")) GTEST_SKIP() << "this system does not list descriptors";
  const auto cycle = [](int count) {
    auto parent = full_parent();
    for (int i = 0; i < count; ++i) {
      // Now and then so much that the image is made anew.
      write_pages(*parent, 0, i % 50 == 0 ? 200 : 3, static_cast<uint8_t>(i | 1));
      auto child = fork_of(*parent);
      write_pages(*child, 9, 20, 0x55);
      ASSERT_TRUE(child->call("step", {}).is_ok());
      if (i % 10 == 0) {
        ASSERT_EQ(memory_of(*fork_of(*child)), memory_of(*child)) << i;
      }
    }
  };
  cycle(20);
  const auto before = region::process_residency();
  ASSERT_TRUE(before.is_ok());
  const size_t descriptors = open_descriptors();
  const size_t maps = mappings();
  cycle(1000);
  const auto after = region::process_residency();
  ASSERT_TRUE(after.is_ok());
  EXPECT_LT(after->rss_bytes, before->rss_bytes + (1u << 20));
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(mappings(), maps + 2);
}

TEST(Fork, AThousandChildrenTakeLittleMemoryEach) {
  if (!std::filesystem::exists("/proc/self/fd")) GTEST_SKIP() << "this system does not tell its memory";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes memory of its own";
#endif
  constexpr size_t kChildren = 1000;
  auto parent = full_parent();
  std::vector<std::unique_ptr<Instance>> children;
  const auto add = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) children.push_back(fork_of(*parent));
  };
  fork_of(*parent);
  write_pages(*parent, 20, 3, 1);
  add(10);
  const size_t descriptors = open_descriptors();
  const auto before = region::process_residency();
  ASSERT_TRUE(before.is_ok());
  add(kChildren);
  const auto after = region::process_residency();
  ASSERT_TRUE(after.is_ok());
  const size_t each = (after->rss_bytes - before->rss_bytes) / kChildren;
  std::printf("resident bytes of a child: %zu, of them private: %zu\n", each,
              (after->anonymous_bytes - before->anonymous_bytes) / kChildren);
  EXPECT_LE(each, 100u << 10);
  EXPECT_EQ(open_descriptors(), descriptors) << "children share the image's descriptor";
  for (const auto& child : children) ASSERT_TRUE(child->call("step", {}).is_ok());
}

}  // namespace
}  // namespace driftwood::wasm
