#include "os/anonymous_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "os/folder.h"
#include "os/os_error.h"

namespace driftwood::os {
namespace {

#ifdef __linux__

// Older headers lack it, older systems (before 6.3) refuse it.
constexpr unsigned int kNoExecSeal = 0x0008;

int open_anonymous() {
  constexpr unsigned int kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create("driftwood-memory", kFlags | kNoExecSeal);
  return fd >= 0 || errno != EINVAL ? fd : ::memfd_create("driftwood-memory", kFlags);
}

#else

int open_anonymous() {
  const char* folder = ::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/driftwood-memory.XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return fd;
  (void)::unlink(path.c_str());
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

#endif

}  // namespace

Result<Descriptor> create_anonymous_file(uint64_t bytes) {
  Descriptor file(open_anonymous());
  if (!file.is_open()) return errno_status(errno, "making an anonymous file");
  const int error = set_size_of(file.get(), bytes);
  if (error != 0) return errno_status(error, "an anonymous file of " + std::to_string(bytes) + " bytes");
  return file;
}

Status write_all_at(int fd, std::span<const uint8_t> from, uint64_t offset) {
  while (!from.empty()) {
    size_t done = 0;
    const int error = write_some_at(fd, from, offset, &done);
    if (error != 0) return errno_status(error, "writing " + std::to_string(from.size()) + " bytes");
    if (done == 0) return errno_status(ENOSPC, "writing " + std::to_string(from.size()) + " bytes");
    from = from.subspan(done);
    offset += done;
  }
  return Status::ok();
}

Status seal_file(int fd) {
#ifdef __linux__
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return errno_status(errno, "sealing an anonymous file");
  }
#else
  (void)fd;
#endif
  return Status::ok();
}

}  // namespace driftwood::os
