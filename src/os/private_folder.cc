#include "os/private_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include "os/descriptor.h"
#include "os/os_error.h"

namespace driftwood::os {
namespace {

Status check_private(const std::string& path, const struct stat& info) {
  if (info.st_uid != geteuid()) return permission_denied(path + ": belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return permission_denied(path + ": others may write it");
  return Status::ok();
}

Result<Descriptor> open_private_folder(const std::string& folder) {
  Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return errno_status(errno, folder);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return errno_status(errno, folder);
  DW_RETURN_IF_ERROR(check_private(folder, info));
  return fd;
}

std::string leaf_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

Status write_all(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_status(errno, path);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<uint8_t>> read_private_file(const std::string& folder, const std::string& path,
                                               uint64_t max_bytes) {
  DW_ASSIGN_OR_RETURN(const Descriptor dir, open_private_folder(folder));
  const Descriptor fd(openat(dir.get(), leaf_of(path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_open()) return errno_status(errno, path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return errno_status(errno, path);
  DW_RETURN_IF_ERROR(check_private(path, info));
  if (!S_ISREG(info.st_mode)) return invalid_argument(path + ": not a regular file");
  if (static_cast<uint64_t>(info.st_size) > max_bytes) return out_of_range(path + ": larger than expected");
  std::vector<uint8_t> bytes(static_cast<size_t>(info.st_size));
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(errno, path);
    if (n == 0) return data_loss(path + ": shorter than its size");
    filled += static_cast<size_t>(n);
  }
  return bytes;
}

Status write_private_file(const std::string& folder, const std::string& path, std::span<const uint8_t> head,
                          std::span<const uint8_t> body) {
  static std::atomic<unsigned> counter{0};
  std::error_code made;
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, made);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno_status(errno, folder);
  DW_ASSIGN_OR_RETURN(const Descriptor dir, open_private_folder(folder));
  const std::string leaf = leaf_of(path);
  const std::string temporary = leaf + ".new." + std::to_string(getpid()) + "." + std::to_string(counter++);
  const Descriptor fd(
      openat(dir.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.is_open()) return errno_status(errno, path);
  Status status = write_all(fd.get(), head, path);
  if (status.is_ok()) status = write_all(fd.get(), body, path);
  if (status.is_ok() && renameat(dir.get(), temporary.c_str(), dir.get(), leaf.c_str()) != 0) {
    status = errno_status(errno, path);
  }
  if (!status.is_ok()) unlinkat(dir.get(), temporary.c_str(), 0);
  return status;
}

void trim_folder(const std::string& folder, const std::string& suffix, uint64_t max_bytes) {
  namespace fs = std::filesystem;
  struct Entry {
    fs::file_time_type when;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (!name.ends_with(suffix) || !it->is_regular_file(ignored)) continue;
    const uint64_t bytes = it->file_size(ignored);
    if (ignored) continue;
    entries.push_back({it->last_write_time(ignored), bytes, it->path()});
    total += bytes;
  }
  if (total <= max_bytes) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.when < b.when; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes) return;
    if (fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

}  // namespace driftwood::os
