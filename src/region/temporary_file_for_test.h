// A nameless file for tests and benches, in TMPDIR, and what this process has mapped of it.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace driftwood::region {

class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/driftwood_XXXXXX";
    fd_ = mkstemp(path.data());
    // A second descriptor that can't be read through, for tests of failures.
    if (fd_ >= 0) write_only_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    unlink(path.c_str());
  }
  ~TemporaryFile() {
    close(fd_);
    close(write_only_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_; }
  int write_only_fd() const { return write_only_; }

  bool write_at(uint64_t offset, std::span<const uint8_t> bytes) const {
    while (!bytes.empty()) {
      const ssize_t done = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (done <= 0) return false;
      offset += static_cast<uint64_t>(done);
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
    return true;
  }
  std::vector<uint8_t> bytes() const {
    struct stat info = {};
    if (fstat(fd_, &info) != 0) return {};
    std::vector<uint8_t> all(static_cast<size_t>(info.st_size));
    size_t at = 0;
    while (at < all.size()) {
      const ssize_t done = pread(fd_, all.data() + at, all.size() - at, static_cast<off_t>(at));
      if (done <= 0) return {};
      at += static_cast<size_t>(done);
    }
    return all;
  }
  bool cut(uint64_t bytes) const { return ftruncate(fd_, static_cast<off_t>(bytes)) == 0; }
  // Out of the page cache, so that the next to touch it waits for the disk.
  bool drop_cached() const { return fsync(fd_) == 0 && posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED) == 0; }

  // Mappings of this file in this process; -1 if the system does not tell.
  int mappings() const {
    struct stat info = {};
    std::ifstream maps("/proc/self/maps");
    if (fstat(fd_, &info) != 0 || !maps) return -1;
    int count = 0;
    for (std::string line; std::getline(maps, line);) {
      std::istringstream fields(line);
      std::string range, access, offset, device;
      uint64_t inode = 0;
      fields >> range >> access >> offset >> device >> inode;
      count += inode == info.st_ino && line.find("driftwood_") != std::string::npos;
    }
    return count;
  }

 private:
  int fd_ = -1;
  int write_only_ = -1;
};

// All mappings of this process; -1 if the system does not tell.
inline int count_mappings() {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return -1;
  int count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

}  // namespace driftwood::region
