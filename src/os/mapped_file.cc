#include "os/mapped_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file_stat.h"
#include "os/folder.h"
#include "os/os_error.h"

namespace driftwood::os {
namespace {

struct OpenFile {
  int fd = -1;
  FileStamp stamp;
};

// O_NONBLOCK so that a pipe or a device named by mistake is refused instead of waited for.
Result<OpenFile> open_regular(const std::string& path, int more_flags = 0) {
  if (path.empty()) return invalid_argument("the path of a file is empty");
  if (path.find('\0') != std::string::npos) return invalid_argument("a path holds a NUL byte");
  OpenFile file;
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | more_flags);
  if (file.fd < 0) return errno_status(errno, path);
  struct stat info;
  if (::fstat(file.fd, &info) != 0) {
    const int error = errno;
    ::close(file.fd);
    return errno_status(error, path);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(file.fd);
    return invalid_argument(
        path + (S_ISDIR(info.st_mode) ? ": is a folder, not a file" : ": is not a regular file"));
  }
  file.stamp = file_stamp_from(info);
  return file;
}

int64_t nanoseconds(const timespec& t) { return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

}  // namespace

FileStamp file_stamp_from(const struct stat& info) {
#ifdef __APPLE__
  const timespec modified = info.st_mtimespec, changed = info.st_ctimespec;
#else
  const timespec modified = info.st_mtim, changed = info.st_ctim;
#endif
  return {static_cast<uint64_t>(info.st_dev),
          info.st_ino,
          static_cast<uint64_t>(info.st_size),
          nanoseconds(modified),
          nanoseconds(changed),
          info.st_uid,
          info.st_mode & 07777u};
}

uint32_t effective_user() { return ::geteuid(); }

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) { return open(path, {}); }

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path,
                                                           const MapOptions& options) {
  DW_ASSIGN_OR_RETURN(const OpenFile file, open_regular(path, options.follow_link ? 0 : O_NOFOLLOW));
  const size_t size = file.stamp.size_bytes;
  void* base = nullptr;
  if (size > 0) {
    base = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
    if (base == MAP_FAILED) {
      const int error = errno;
      ::close(file.fd);
      return errno_status(error, path + ": mapping " + std::to_string(size) + " bytes");
    }
  }
  std::shared_ptr<MappedFile> mapped(
      new MappedFile(path, static_cast<const uint8_t*>(base), size, file.stamp));
  Descriptor fd(file.fd);
  if (options.keep_descriptor) mapped->fd_ = std::move(fd);
  return std::shared_ptr<const MappedFile>(std::move(mapped));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<uint8_t*>(base_), size_);
}

void MappedFile::drop_pages(std::span<const uint8_t> range) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(range.data()) + page - 1) & ~(page - 1);
  const auto end = reinterpret_cast<uintptr_t>(range.data() + range.size()) & ~(page - 1);
  const auto first = reinterpret_cast<uintptr_t>(base_);
  DW_CHECK(range.empty() || (range.data() >= base_ && range.data() + range.size() <= base_ + size_),
           "drop_pages outside the mapping");
  if (end > begin && begin >= first) {
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin,
                    MADV_DONTNEED);  // advice: failure costs nothing
  }
}

Result<FileCopy> FileCopy::read(const std::string& path) {
  DW_ASSIGN_OR_RETURN(const OpenFile file, open_regular(path));
  const Descriptor fd(file.fd);
  FileCopy copy;
  copy.size_ = file.stamp.size_bytes;
  if (copy.size_ == 0) return copy;
  DW_ASSIGN_OR_RETURN(copy.memory_, MappedMemory::allocate(copy.size_));
  const std::span<uint8_t> into(copy.memory_.data(), copy.size_);
  for (size_t done = 0; done < copy.size_;) {
    size_t got = 0;
    if (const int error = read_some_at(fd.get(), into.subspan(done), done, &got))
      return errno_status(error, path);
    if (got == 0) return data_loss(path + ": got shorter while it was read");
    done += got;
  }
  return copy;
}

Result<std::string> read_text_file(const std::string& path, size_t max_bytes, bool follow_link) {
  DW_ASSIGN_OR_RETURN(const OpenFile file, open_regular(path, follow_link ? 0 : O_NOFOLLOW));
  std::string text;
  if (file.stamp.size_bytes > max_bytes) {
    ::close(file.fd);
    return resource_exhausted(path + ": has " + std::to_string(file.stamp.size_bytes) + " bytes, at most " +
                              std::to_string(max_bytes) + " are read");
  }
  text.resize(file.stamp.size_bytes);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.fd, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      ::close(file.fd);
      return errno_status(error, path);
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  ::close(file.fd);
  text.resize(done);
  return text;
}

}  // namespace driftwood::os
