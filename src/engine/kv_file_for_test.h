// A frozen session's KV in a file, as a store would have it: for tests and benches.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine/frozen_session.h"

namespace driftwood::engine::testing {

// A nameless file that lives as long as this.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/driftwood_kv_XXXXXX";
    fd_ = mkstemp(path.data());
    if (fd_ >= 0) unlink(path.c_str());
  }
  ~TemporaryFile() {
    if (fd_ >= 0) close(fd_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_; }
  bool write_at(uint64_t offset, std::span<const uint8_t> bytes) const {
    while (!bytes.empty()) {
      const ssize_t done = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (done <= 0) return false;
      offset += static_cast<uint64_t>(done);
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
    return true;
  }
  bool cut(uint64_t bytes) const { return ftruncate(fd_, static_cast<off_t>(bytes)) == 0; }
  // Out of the page cache, so that the next to touch it waits for the disk.
  bool drop_cached() const { return fsync(fd_) == 0 && posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED) == 0; }

 private:
  int fd_ = -1;
};

// The same session with its KV in a new file from `first_offset` on; that of an empty session stays empty.
inline Result<FrozenSession> move_kv_to_file(FrozenSession frozen, uint64_t first_offset = 0) {
  auto file = std::make_shared<TemporaryFile>();
  uint64_t offset = first_offset;
  for (const std::span<const uint8_t> block : frozen.kv_blocks) {
    if (!file->write_at(offset, block)) return internal_error("a temporary file could not be written");
    frozen.kv_files.push_back({file->fd(), offset, block.size()});
    offset += block.size();
  }
  frozen.kv_blocks.clear();
  frozen.kv_owner = std::move(file);
  return frozen;
}

inline TemporaryFile& file_of(const FrozenSession& frozen) {
  return *std::static_pointer_cast<TemporaryFile>(std::const_pointer_cast<void>(frozen.kv_owner));
}

}  // namespace driftwood::engine::testing
