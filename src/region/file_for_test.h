// A file whose bytes the tests of regions know.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "region/region.h"

namespace driftwood::region {

// A file of `pages` OS pages behind one alignment unit; byte i of page p is p * 7 + i + seed.
class TestFile {
 public:
  explicit TestFile(size_t pages, int seed = 0) : bytes_(kImageAlignment + pages * os_page_bytes()) {
    for (size_t i = 0; i < pages * os_page_bytes(); ++i) {
      bytes_[kImageAlignment + i] =
          static_cast<uint8_t>(i / os_page_bytes() * 7 + i + static_cast<size_t>(seed));
    }
    path_ = testing::TempDir() + "dw_region_XXXXXX";
    fd_ = mkstemp(path_.data());
    EXPECT_GE(fd_, 0);
    EXPECT_EQ(write(fd_, bytes_.data(), bytes_.size()), static_cast<ssize_t>(bytes_.size()));
  }
  ~TestFile() {
    close(fd_);
    unlink(path_.c_str());
  }
  FileImage image() const { return FileImage{fd_, kImageAlignment, bytes_.size() - kImageAlignment}; }
  const uint8_t* expected() const { return bytes_.data() + kImageAlignment; }
  int fd() const { return fd_; }
  bool unchanged() const {
    std::vector<uint8_t> now(bytes_.size());
    return pread(fd_, now.data(), now.size(), 0) == static_cast<ssize_t>(now.size()) && now == bytes_;
  }

 private:
  std::vector<uint8_t> bytes_;
  std::string path_;
  int fd_ = -1;
};

}  // namespace driftwood::region
