#include "os/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/fault_hook.h"
#include "os/file_stat.h"
#include "os/folder_changes.h"
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

// ".NAME.tmp-PID-N", as temporary_name() makes them.
bool is_temporary_name(std::string_view name) {
  const size_t mark = name.rfind(".tmp-");
  if (!name.starts_with('.') || mark == std::string_view::npos || mark == 0) return false;
  const std::string_view numbers = name.substr(mark + 5);
  return !numbers.empty() && numbers.find_first_not_of("0123456789-") == std::string_view::npos;
}

// A temporary is locked as long as its process has it open: whoever gets the lock knows that nobody will
// finish it. False if it was taken for abandoned between its making and this. A file system without locks
// only leaves more behind after a crash.
bool lock_own(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat info{};
  return ::fstat(fd, &info) == 0 && info.st_nlink > 0;
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
  if (wanted.empty() || wanted.back() == '/')
    return invalid_argument("'" + wanted + "' does not name a file");
  DW_ASSIGN_OR_RETURN(const std::string path, place_of(wanted));
  // A crashed process may have left the same name (process ids come round): try the next.
  for (int attempt = 0;; ++attempt) {
    std::string temporary = temporary_name(path);
    if (const int fault = injected_fault(Change::kCreate, temporary)) return errno_status(fault, path);
    const int fd =
        ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, static_cast<mode_t>(access));
    if (fd < 0 && errno == EEXIST && attempt < 100) continue;
    if (fd < 0) return errno_status(errno, path);
    AtomicFile file(path, std::move(temporary), fd);
    if (!lock_own(fd) && attempt < 100) continue;
    if (::fchmod(fd, static_cast<mode_t>(access)) != 0) return errno_status(errno, file.temporary_);
    return file;
  }
}

void remove_abandoned_files(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_temporary_name(it->path().filename().native())) continue;
    const Descriptor file(::open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    struct stat info{};
    if (!file.is_open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) (void)remove_file(it->path().native());
  }
}

AtomicFile::~AtomicFile() { abandon(); }

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      flushed_(other.flushed_) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    abandon();
    path_ = std::move(other.path_);
    temporary_ = std::move(other.temporary_);
    fd_ = std::exchange(other.fd_, -1);
    flushed_ = other.flushed_;
  }
  return *this;
}

void AtomicFile::abandon() {
  if (fd_ < 0) return;
  ::close(fd_);
  (void)remove_file(temporary_).is_ok();
  fd_ = -1;
}

Status AtomicFile::write(std::span<const uint8_t> bytes) {
  DW_CHECK(fd_ >= 0, "write after commit");
  flushed_ = false;
  while (!bytes.empty()) {
    if (const int fault = injected_fault(Change::kWrite, path_)) return errno_status(fault, path_);
    size_t put = 0;
    if (const int error = write_some(fd_, bytes, &put)) return errno_status(error, path_);
    bytes = bytes.subspan(put);
  }
  return Status::ok();
}

Status AtomicFile::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  DW_CHECK(fd_ >= 0, "write after commit");
  flushed_ = false;
  while (!bytes.empty()) {
    if (const int fault = injected_fault(Change::kWrite, path_)) return errno_status(fault, path_);
    size_t put = 0;
    if (const int error = write_some_at(fd_, bytes, offset, &put)) return errno_status(error, path_);
    bytes = bytes.subspan(put);
    offset += put;
  }
  return Status::ok();
}

void AtomicFile::start_write_back(uint64_t offset, uint64_t bytes) {
#ifdef __linux__
  (void)::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
#else
  (void)offset;
  (void)bytes;
#endif
}

Status AtomicFile::set_size(uint64_t bytes) {
  DW_CHECK(fd_ >= 0, "set_size after commit");
  flushed_ = false;
  if (const int fault = injected_fault(Change::kWrite, path_)) return errno_status(fault, path_);
  const int error = set_size_of(fd_, bytes);
  return error == 0 ? Status::ok() : errno_status(error, path_ + ": setting its size");
}

Status AtomicFile::flush() {
  DW_CHECK(fd_ >= 0, "flush after commit");
  if (flushed_) return Status::ok();
  if (const int fault = injected_fault(Change::kFlush, path_))
    return errno_status(fault, path_ + ": flushing");
  if (::fsync(fd_) != 0) return errno_status(errno, path_ + ": flushing");
  flushed_ = true;
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
  const Result<FileStamp> committed = commit_as(path_);
  return committed.is_ok() ? Status::ok() : committed.status();
}

Result<FileStamp> AtomicFile::commit_as(const std::string& path, Durability durability) {
  DW_CHECK(fd_ >= 0, "commit twice");
  if (folder_of(path) != folder_of(path_)) {
    return invalid_argument(path_ + ": a link leads it out of the folder of " + path);
  }
  if (durability == Durability::kFlushed) DW_RETURN_IF_ERROR(flush());
  if (const int fault = injected_fault(Change::kRename, path))
    return errno_status(fault, path + ": renaming");
  if (::rename(temporary_.c_str(), path.c_str()) != 0) return errno_status(errno, path + ": renaming");
  const Descriptor fd(std::exchange(fd_, -1));
  if (durability == Durability::kFlushed) DW_RETURN_IF_ERROR(flush_folder(folder_of(path)));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, path);
  return file_stamp_from(info);
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
    if (::access(part.c_str(), F_OK) == 0) continue;
    if (const int fault = injected_fault(Change::kMakeFolder, part)) return errno_status(fault, part);
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
