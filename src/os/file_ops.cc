// Work on open descriptors, and folder listings (see folder.h).
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "os/file_stat.h"
#include "os/folder.h"

namespace driftwood::os {
namespace {

int result(int returned) { return returned == 0 ? 0 : errno; }

// The most that one read or write is asked for: counts stay positive in 32 bits.
constexpr size_t kMaxTransferBytes = 1u << 30;

template <typename Call>
int transfer(Call call, size_t* done) {
  for (;;) {
    const ssize_t n = call();
    if (n >= 0) {
      *done = static_cast<size_t>(n);
      return 0;
    }
    if (errno != EINTR) return errno;
  }
}

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kRegular;
  if (S_ISDIR(mode)) return FileKind::kFolder;
  if (S_ISLNK(mode)) return FileKind::kLink;
  if (S_ISBLK(mode)) return FileKind::kBlockDevice;
  if (S_ISCHR(mode)) return FileKind::kCharacterDevice;
  if (S_ISSOCK(mode)) return FileKind::kSocket;
  return FileKind::kUnknown;
}

FileKind kind_of_entry(unsigned char type) {
  switch (type) {
    case DT_REG: return FileKind::kRegular;
    case DT_DIR: return FileKind::kFolder;
    case DT_LNK: return FileKind::kLink;
    case DT_BLK: return FileKind::kBlockDevice;
    case DT_CHR: return FileKind::kCharacterDevice;
    case DT_SOCK: return FileKind::kSocket;
    default: return FileKind::kUnknown;
  }
}

uint64_t nanoseconds(const timespec& t) {
  if (t.tv_sec < 0) return 0;
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

timespec to_timespec(TimeChange change) {
  switch (change.kind) {
    case TimeChange::Kind::kKeep: return {0, UTIME_OMIT};
    case TimeChange::Kind::kNow: return {0, UTIME_NOW};
    case TimeChange::Kind::kSet: break;
  }
  return {static_cast<time_t>(change.ns / 1000000000u), static_cast<long>(change.ns % 1000000000u)};
}

}  // namespace

FileInfo file_info_from(const struct stat& info) {
  FileInfo out;
  out.device = static_cast<uint64_t>(info.st_dev);
  out.inode = info.st_ino;
  out.links = info.st_nlink;
  out.size_bytes = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
#ifdef __APPLE__
  out.accessed_ns = nanoseconds(info.st_atimespec);
  out.modified_ns = nanoseconds(info.st_mtimespec);
  out.changed_ns = nanoseconds(info.st_ctimespec);
#else
  out.accessed_ns = nanoseconds(info.st_atim);
  out.modified_ns = nanoseconds(info.st_mtim);
  out.changed_ns = nanoseconds(info.st_ctim);
#endif
  out.kind = kind_of(info.st_mode);
  return out;
}

TimePair time_pair(TimeChange accessed, TimeChange modified) {
  return TimePair{{to_timespec(accessed), to_timespec(modified)}};
}

int info_of(int fd, FileInfo* out) {
  struct stat info;
  if (fstat(fd, &info) != 0) return errno;
  *out = file_info_from(info);
  return 0;
}

int set_times_of(int fd, TimeChange accessed, TimeChange modified) {
  const TimePair times = time_pair(accessed, modified);
  return result(futimens(fd, times.t));
}

int set_size_of(int fd, uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(INT64_MAX)) return EFBIG;
  return result(ftruncate(fd, static_cast<off_t>(bytes)));
}

int sync_file(int fd, bool data_only) {
#ifdef __APPLE__
  (void)data_only;
  return result(fsync(fd));
#else
  return result(data_only ? fdatasync(fd) : fsync(fd));
#endif
}

int set_append(int fd, bool append) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return errno;
  return fcntl(fd, F_SETFL, append ? flags | O_APPEND : flags & ~O_APPEND) < 0 ? errno : 0;
}

int read_some(int fd, std::span<uint8_t> into, size_t* done) {
  return transfer([&] { return read(fd, into.data(), std::min(into.size(), kMaxTransferBytes)); }, done);
}

int write_some(int fd, std::span<const uint8_t> from, size_t* done) {
  return transfer([&] { return write(fd, from.data(), std::min(from.size(), kMaxTransferBytes)); }, done);
}

int read_some_at(int fd, std::span<uint8_t> into, uint64_t offset, size_t* done) {
  if (offset > static_cast<uint64_t>(INT64_MAX)) return EINVAL;
  return transfer(
      [&] {
        return pread(fd, into.data(), std::min(into.size(), kMaxTransferBytes), static_cast<off_t>(offset));
      },
      done);
}

int write_some_at(int fd, std::span<const uint8_t> from, uint64_t offset, size_t* done) {
  if (offset > static_cast<uint64_t>(INT64_MAX)) return EFBIG;
  return transfer(
      [&] {
        return pwrite(fd, from.data(), std::min(from.size(), kMaxTransferBytes), static_cast<off_t>(offset));
      },
      done);
}

int seek(int fd, int64_t offset, SeekFrom from, uint64_t* position) {
  const int whence = from == SeekFrom::kStart ? SEEK_SET : from == SeekFrom::kCurrent ? SEEK_CUR : SEEK_END;
  const off_t at = lseek(fd, static_cast<off_t>(offset), whence);
  if (at < 0) return errno;
  *position = static_cast<uint64_t>(at);
  return 0;
}

int list_folder(int fd, size_t max_entries, std::vector<FolderEntry>* out) {
  // A descriptor of its own: the position of `fd` is left alone.
  const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return errno;
  DIR* dir = fdopendir(copy);
  if (dir == nullptr) {
    const int error = errno;
    close(copy);
    return error;
  }
  FileInfo self;
  int error = info_of(fd, &self);
  out->clear();
  out->push_back({".", self.inode, FileKind::kFolder});
  out->push_back({"..", self.inode, FileKind::kFolder});  // what is above is not told
  errno = 0;
  while (error == 0) {
    const dirent* entry = readdir(dir);
    if (entry == nullptr) {
      error = errno;
      break;
    }
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (out->size() == max_entries) {
      error = EFBIG;
      break;
    }
    out->push_back({std::move(name), entry->d_ino, kind_of_entry(entry->d_type)});
  }
  closedir(dir);
  std::sort(out->begin() + 2, out->end(), [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  if (error != 0) out->clear();
  return error;
}

}  // namespace driftwood::os
