#include "os/anonymous_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace driftwood::os {
namespace {

TEST(AnonymousFile, HoldsWhatWasWrittenAndZeros) {
  auto file = create_anonymous_file(1 << 20);
  ASSERT_TRUE(file.is_ok()) << file.status().to_string();
  const std::vector<uint8_t> bytes(10000, 0x5a);
  ASSERT_TRUE(write_all_at(file->get(), bytes, 65536).is_ok());
  std::vector<uint8_t> now(1 << 20, 0xff);
  ASSERT_EQ(pread(file->get(), now.data(), now.size(), 0), static_cast<ssize_t>(now.size()));
  std::vector<uint8_t> expected(1 << 20);
  std::copy(bytes.begin(), bytes.end(), expected.begin() + 65536);
  EXPECT_EQ(now, expected);
  struct stat info;
  ASSERT_EQ(fstat(file->get(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 1 << 17) << "zeros take room";
}

TEST(AnonymousFile, IsAsItIsOnceSealed) {
#ifndef __linux__
  GTEST_SKIP() << "this system has no seals";
#endif
  auto file = create_anonymous_file(65536);
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(seal_file(file->get()).is_ok());
  const uint8_t byte[] = {1};
  EXPECT_EQ(write_all_at(file->get(), byte, 0).code(), Code::kPermissionDenied);
  EXPECT_NE(ftruncate(file->get(), 4096), 0);
  EXPECT_NE(ftruncate(file->get(), 1 << 20), 0);
  void* mapped = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE, file->get(), 0);
  ASSERT_NE(mapped, MAP_FAILED) << "private mappings are what it is for";
  static_cast<uint8_t*>(mapped)[0] = 1;
  EXPECT_EQ(mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0), MAP_FAILED);
  munmap(mapped, 65536);
}

}  // namespace
}  // namespace driftwood::os
