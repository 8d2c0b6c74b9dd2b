#include "os/control_group.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "os/physical_memory.h"
#include "os/small_file.h"
#include "os/temporary_folder.h"

namespace driftwood::os {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = 1024 * 1024;

class ControlGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::create("dw_group_");
    ASSERT_TRUE(folder.is_ok()) << folder.status().message();
    folder_ = std::move(*folder);
  }
  void write(const std::string& path, const std::string& text) {
    const fs::path whole = folder_->path() + path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  GroupMemory read() const { return group_memory(folder_->path()); }

  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(ControlGroupTest, NothingThereIsNoLimit) {
  EXPECT_EQ(read().limit_bytes, INT64_MAX);
  EXPECT_EQ(read().available_bytes, INT64_MAX);
}

TEST_F(ControlGroupTest, Version2TightestOfAllAround) {
  write("/proc/self/cgroup", "0::/outer/inner\n");
  write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("/sys/fs/cgroup/outer/memory.max", std::to_string(700 * kMiB) + "\n");
  write("/sys/fs/cgroup/outer/memory.current", std::to_string(600 * kMiB) + "\n");
  write("/sys/fs/cgroup/outer/memory.stat", "anon 1\nfile 99\ninactive_file " + std::to_string(400 * kMiB) +
                                                "\nactive_file " + std::to_string(100 * kMiB) + "\n");
  EXPECT_EQ(read().limit_bytes, 700 * kMiB);
  EXPECT_EQ(read().available_bytes, 600 * kMiB);  // 100 MiB are no pages of files
}

// In a container the path is the host's, but the mounted root is the container's own group.
TEST_F(ControlGroupTest, Version2RootOfAContainer) {
  write("/proc/self/cgroup", "0::/some/where/else\n");
  write("/sys/fs/cgroup/memory.max", "1000\n");
  write("/sys/fs/cgroup/memory.current", "3000\n");
  EXPECT_EQ(read().limit_bytes, 1000);
  EXPECT_EQ(read().available_bytes, 0);
}

TEST_F(ControlGroupTest, Version1BesideOtherControllers) {
  write("/proc/self/cgroup", "9:name=systemd:/\n5:cpu,memory:/job\n3:cpuset:/other\n0::/\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4000\n");
  write("/sys/fs/cgroup/memory/job/memory.stat",
        "active_file 7\ntotal_active_file 1000\ntotal_inactive_file 500\n");
  EXPECT_EQ(read().limit_bytes, 5000);
  EXPECT_EQ(read().available_bytes, 2500);
}

TEST_F(ControlGroupTest, NonsenseIsNoLimit) {
  write("/proc/self/cgroup", "memory\n:::\n4:memory\n" + std::string(5000, '/') + "\n0::/x");
  write("/sys/fs/cgroup/x/memory.max", "-5");
  EXPECT_EQ(read().limit_bytes, INT64_MAX);
}

TEST(SmallFile, Numbers) {
  EXPECT_EQ(leading_number(" \t12 kB"), 12);
  EXPECT_FALSE(leading_number("max").has_value());
  EXPECT_FALSE(leading_number("").has_value());
  EXPECT_FALSE(leading_number("99999999999999999999").has_value());
  EXPECT_EQ(number_of("a 1\nab 2\nb 3\n", "ab "), 2);
  EXPECT_EQ(number_of("a 1\nb 3", "b "), 3);
  EXPECT_FALSE(number_of("xb 3\n", "b ").has_value());
}

TEST(PhysicalMemory, AvailableIsAPartOfAll) {
  const auto all = physical_memory_bytes();
  const auto available = available_memory_bytes();
  ASSERT_TRUE(all.is_ok() && available.is_ok());
  EXPECT_GT(*all, 0);
  EXPECT_GT(*available, 0);
  EXPECT_LE(*available, *all);
}

}  // namespace
}  // namespace driftwood::os
