#include "os/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "os/descriptor.h"

namespace driftwood::os {
namespace {

constexpr size_t kReadStepBytes = 1 << 20;

Status read_error(const std::string& path, int error) {
  const std::string message = path + ": " + strerror(error);
  if (error == ENOENT || error == ENOTDIR) return not_found(message);
  if (error == EACCES || error == EPERM) return permission_denied(message);
  return unavailable(message);
}

}  // namespace

Result<std::vector<uint8_t>> read_whole_file(const std::string& path, uint64_t max_bytes) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return read_error(path, errno);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return read_error(path, errno);
  if (!S_ISREG(info.st_mode)) return invalid_argument(path + ": not a regular file");
  std::vector<uint8_t> bytes;
  const uint64_t expected = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
  if (expected > max_bytes) {
    return resource_exhausted(path + ": " + std::to_string(expected) + " bytes, the limit is " +
                              std::to_string(max_bytes));
  }
  bytes.reserve(expected + kReadStepBytes);
  // The size may change under us: read to the end, within the limit.
  for (;;) {
    const size_t filled = bytes.size();
    bytes.resize(filled + kReadStepBytes);
    const ssize_t n = read(fd.get(), bytes.data() + filled, kReadStepBytes);
    bytes.resize(filled + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return read_error(path, errno);
    if (n == 0) return bytes;
    if (bytes.size() > max_bytes) return resource_exhausted(path + ": more than " + std::to_string(max_bytes) + " bytes");
  }
}

}  // namespace driftwood::os
