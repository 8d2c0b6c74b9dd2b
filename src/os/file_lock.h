// FileLock: an advisory lock on a file, shared or exclusive, between processes and between threads of one;
// released with the object or the process.
#pragma once

#include <string>

#include "base/status.h"
#include "os/descriptor.h"

namespace driftwood::os {

class FileLock {
 public:
  enum class Kind { kShared, kExclusive };
  FileLock() = default;  // holds nothing
  // Waits for it. `create`: makes the file (0600) if it is missing; without, the file is not opened for
  // writing. Links are not followed.
  static Result<FileLock> acquire(const std::string& path, Kind kind, bool create);

 private:
  explicit FileLock(Descriptor fd) : fd_(std::move(fd)) {}
  Descriptor fd_;
};

}  // namespace driftwood::os
