#include "os/folder_changes.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/fault_hook.h"
#include "os/file_stat.h"
#include "os/folder.h"
#include "os/os_error.h"

namespace driftwood::os {

bool is_folder(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Status make_private_folder(const std::string& path) {
  if (is_folder(path)) return Status::ok();
  if (const int fault = injected_fault(Change::kMakeFolder, path)) return errno_status(fault, path);
  if (::mkdir(path.c_str(), 0700) == 0) return Status::ok();
  const int error = errno;
  if (error == EEXIST && is_folder(path)) return Status::ok();
  return errno_status(error, path);
}

Status remove_file(const std::string& path) {
  if (const int fault = injected_fault(Change::kRemove, path))
    return errno_status(fault, path + ": removing");
  return ::unlink(path.c_str()) == 0 ? Status::ok() : errno_status(errno, path + ": removing");
}

Status flush_folder(const std::string& path) {
  if (const int fault = injected_fault(Change::kFlushFolder, path)) {
    return errno_status(fault, path + ": flushing the folder");
  }
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return errno_status(errno, path);
  // Some file systems cannot flush a folder and say EINVAL; the rename is then as durable as they make it.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return errno_status(errno, path + ": flushing the folder");
  return Status::ok();
}

Result<FileStamp> stamp_of(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return errno_status(errno, path);
  if (!S_ISREG(info.st_mode)) return invalid_argument(path + ": is not a regular file");
  return file_stamp_from(info);
}

Result<std::vector<std::string>> names_in_folder(const std::string& path) {
  constexpr size_t kMaxEntries = 10'000'000;
  Descriptor fd;
  if (const int error = open_root_folder(path, &fd)) return errno_status(error, path);
  std::vector<FolderEntry> entries;
  if (const int error = list_folder(fd.get(), kMaxEntries, &entries)) return errno_status(error, path);
  std::vector<std::string> names;
  for (size_t i = 2; i < entries.size(); ++i) names.push_back(std::move(entries[i].name));
  return names;
}

}  // namespace driftwood::os
