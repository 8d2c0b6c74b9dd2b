#include "os/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os_error.h"

namespace driftwood::os {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return folder + "." + name + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
}

Status sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_status(errno, folder);
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some file systems cannot flush a folder and say EINVAL; the rename is then as durable as they make it.
  if (result != 0 && error != EINVAL) return errno_status(error, folder + ": flushing the folder");
  return Status::ok();
}

}  // namespace

// Where a new file for `path` belongs: the target of a link, and never in place of what is no regular file.
static Result<std::string> place_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return path;
  if (!S_ISREG(info.st_mode)) {
    return invalid_argument(path + ": is there already and is not a regular file; it is left as it is");
  }
  struct stat link{};
  if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return path;
  char* const resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return errno_status(errno, path);
  std::string target = resolved;
  std::free(resolved);
  return target;
}

Result<AtomicFile> AtomicFile::create(const std::string& wanted, FileAccess access) {
  if (wanted.empty() || wanted.back() == '/') return invalid_argument("'" + wanted + "' does not name a file");
  DW_ASSIGN_OR_RETURN(const std::string path, place_of(wanted));
  // A crashed process may have left the same name (process ids come round): try the next.
  for (int attempt = 0;; ++attempt) {
    std::string temporary = temporary_name(path);
    const int fd =
        ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, static_cast<mode_t>(access));
    if (fd < 0 && errno == EEXIST && attempt < 100) continue;
    if (fd < 0) return errno_status(errno, path);
    AtomicFile file(path, std::move(temporary), fd);
    if (::fchmod(fd, static_cast<mode_t>(access)) != 0) return errno_status(errno, file.temporary_);
    return file;
  }
}

AtomicFile::~AtomicFile() { abandon(); }

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    abandon();
    path_ = std::move(other.path_);
    temporary_ = std::move(other.temporary_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void AtomicFile::abandon() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
  fd_ = -1;
}

Status AtomicFile::write(std::span<const uint8_t> bytes) {
  DW_CHECK(fd_ >= 0, "write after commit");
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_status(errno, path_);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return Status::ok();
}

Result<MappedMemory> AtomicFile::map_for_writing(size_t size_bytes) {
  DW_CHECK(fd_ >= 0 && size_bytes > 0, "map_for_writing needs an open file and a size");
  const int error = ::posix_fallocate(fd_, 0, static_cast<off_t>(size_bytes));
  if (error != 0) return errno_status(error, path_ + ": reserving " + std::to_string(size_bytes) + " bytes");
  void* base = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED) return errno_status(errno, path_ + ": mapping");
  return MappedMemory(static_cast<uint8_t*>(base), size_bytes);
}

Status AtomicFile::commit() {
  DW_CHECK(fd_ >= 0, "commit twice");
  if (::fsync(fd_) != 0) return errno_status(errno, path_ + ": flushing");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_status(errno, path_ + ": renaming");
  ::close(std::exchange(fd_, -1));
  return sync_folder(folder_of(path_));
}

Status write_file_atomically(const std::string& path, std::span<const uint8_t> bytes, FileAccess access) {
  DW_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path, access));
  DW_RETURN_IF_ERROR(file.write(bytes));
  return file.commit();
}

Status make_private_folders(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int error = errno;
    struct stat info;
    if (::stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      continue;  // read-only parents answer EROFS
    return errno_status(error, part);
  }
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return errno_status(errno, path);
  if (!S_ISDIR(info.st_mode)) return invalid_argument(path + ": is not a folder");
  return Status::ok();
}

}  // namespace driftwood::os
