#include "os/file_lock.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "os/fault_hook.h"
#include "os/os_error.h"

namespace driftwood::os {

Result<FileLock> FileLock::acquire(const std::string& path, Kind kind, bool create) {
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  Descriptor fd(::open(path.c_str(), kFlags | O_RDONLY));
  if (!fd.is_open() && errno == ENOENT && create) {
    if (const int fault = injected_fault(Change::kCreate, path)) return errno_status(fault, path);
    fd = Descriptor(::open(path.c_str(), kFlags | O_RDONLY | O_CREAT, 0600));
  }
  if (!fd.is_open()) return errno_status(errno, path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, path);
  if (!S_ISREG(info.st_mode)) return invalid_argument(path + ": is not a regular file");
  while (::flock(fd.get(), kind == Kind::kShared ? LOCK_SH : LOCK_EX) != 0) {
    if (errno != EINTR) return errno_status(errno, path + ": locking");
  }
  return FileLock(std::move(fd));
}

}  // namespace driftwood::os
