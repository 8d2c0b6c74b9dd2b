// Paths beneath a folder; what works on open descriptors is in file_ops.cc.
#include "os/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file_stat.h"
#include "os/folder_walk.h"

namespace driftwood::os {
namespace {

int result(int returned) { return returned == 0 ? 0 : errno; }

int open_flags(const OpenMode& mode) {
  int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  flags |= mode.write ? (mode.read ? O_RDWR : O_WRONLY) : O_RDONLY;
  if (mode.create) flags |= O_CREAT;
  if (mode.exclusive) flags |= O_EXCL;
  if (mode.truncate) flags |= O_TRUNC;
  if (mode.append) flags |= O_APPEND;
  if (mode.synchronous) flags |= O_SYNC;
  return flags;
}

// Looks before it opens: opening a device or a pipe can itself do something.
int check_openable(const Leaf& leaf, bool must_be_folder, bool* is_folder) {
  struct stat info;
  *is_folder = false;
  if (fstatat(leaf.parent, leaf.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT && !must_be_folder ? 0 : errno;
  }
  *is_folder = S_ISDIR(info.st_mode);
  if (S_ISLNK(info.st_mode)) return ELOOP;
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return EACCES;
  return must_be_folder && !*is_folder ? ENOTDIR : 0;
}

// The system's "remove", "make" and "rename" would take these for what they are not.
int check_name(const Leaf& leaf) { return leaf.name == "." ? EINVAL : 0; }

}  // namespace

int open_root_folder(const std::string& host_path, Descriptor* out) {
  Descriptor fd(open(host_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return errno;
  *out = std::move(fd);
  return 0;
}

int open_beneath(int root, const std::string& path, const OpenMode& mode, Descriptor* out, FileKind* kind) {
  Leaf leaf;
  if (const int error = find_leaf(root, path, mode.follow_last, &leaf); error != 0) return error;
  bool is_folder = false;
  const bool must_be_folder = mode.must_be_folder || leaf.folder_wanted;
  if (const int error = check_openable(leaf, must_be_folder, &is_folder); error != 0) return error;
  if (is_folder) {
    if (mode.create && mode.exclusive) return EEXIST;
    if (mode.write || mode.truncate) return EISDIR;
    Descriptor fd(openat(leaf.parent, leaf.name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.is_open()) return errno;
    *out = std::move(fd);
    *kind = FileKind::kFolder;
    return 0;
  }
  Descriptor fd(openat(leaf.parent, leaf.name.c_str(), open_flags(mode), 0666));
  if (!fd.is_open()) return errno;
  FileInfo info;
  if (const int error = info_of(fd.get(), &info); error != 0) return error;
  if (info.kind != FileKind::kRegular) return EACCES;  // it was swapped between the look and the opening
  *out = std::move(fd);
  *kind = FileKind::kRegular;
  return 0;
}

int info_beneath(int root, const std::string& path, bool follow_last, FileInfo* out) {
  Leaf leaf;
  if (const int error = find_leaf(root, path, follow_last, &leaf); error != 0) return error;
  struct stat info;
  if (fstatat(leaf.parent, leaf.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (leaf.folder_wanted && !S_ISDIR(info.st_mode)) return ENOTDIR;
  *out = file_info_from(info);
  return 0;
}

int set_times_beneath(int root, const std::string& path, bool follow_last, TimeChange accessed,
                      TimeChange modified) {
  Leaf leaf;
  if (const int error = find_leaf(root, path, follow_last, &leaf); error != 0) return error;
  const TimePair times = time_pair(accessed, modified);
  return result(utimensat(leaf.parent, leaf.name.c_str(), times.t, AT_SYMLINK_NOFOLLOW));
}

int make_folder_beneath(int root, const std::string& path) {
  Leaf leaf;
  if (const int error = find_leaf(root, path, false, &leaf); error != 0) return error;
  return result(mkdirat(leaf.parent, leaf.name.c_str(), 0777));
}

int remove_folder_beneath(int root, const std::string& path) {
  Leaf leaf;
  if (const int error = find_leaf(root, path, false, &leaf); error != 0) return error;
  if (const int error = check_name(leaf); error != 0) return error;
  return result(unlinkat(leaf.parent, leaf.name.c_str(), AT_REMOVEDIR));
}

int remove_file_beneath(int root, const std::string& path) {
  Leaf leaf;
  if (const int error = find_leaf(root, path, false, &leaf); error != 0) return error;
  if (leaf.folder_wanted) return leaf.name == "." ? EISDIR : ENOTDIR;
  return result(unlinkat(leaf.parent, leaf.name.c_str(), 0));
}

int rename_beneath(int from_root, const std::string& from, int to_root, const std::string& to) {
  Leaf source;
  Leaf target;
  if (const int error = find_leaf(from_root, from, false, &source); error != 0) return error;
  if (const int error = find_leaf(to_root, to, false, &target); error != 0) return error;
  if (const int error = check_name(source); error != 0) return error;
  if (const int error = check_name(target); error != 0) return error;
  // The system checks a trailing slash itself, as long as it sees it.
  const std::string from_name = source.name + (source.folder_wanted ? "/" : "");
  const std::string to_name = target.name + (target.folder_wanted ? "/" : "");
  return result(renameat(source.parent, from_name.c_str(), target.parent, to_name.c_str()));
}

int hard_link_beneath(int from_root, const std::string& from, int to_root, const std::string& to) {
  Leaf source;
  Leaf target;
  if (const int error = find_leaf(from_root, from, false, &source); error != 0) return error;
  if (const int error = find_leaf(to_root, to, false, &target); error != 0) return error;
  if (source.folder_wanted || target.folder_wanted) return ENOENT;
  return result(linkat(source.parent, source.name.c_str(), target.parent, target.name.c_str(), 0));
}

int make_link_beneath(int root, const std::string& target, const std::string& path) {
  if (target.empty()) return ENOENT;
  if (target[0] == '/') return EPERM;
  Leaf leaf;
  if (const int error = find_leaf(root, path, false, &leaf); error != 0) return error;
  if (leaf.folder_wanted) return leaf.name == "." ? EEXIST : ENOENT;
  return result(symlinkat(target.c_str(), leaf.parent, leaf.name.c_str()));
}

int read_link_beneath(int root, const std::string& path, std::string* target) {
  Leaf leaf;
  if (const int error = find_leaf(root, path, false, &leaf); error != 0) return error;
  char text[PATH_MAX];
  const ssize_t length = readlinkat(leaf.parent, leaf.name.c_str(), text, sizeof text);
  if (length < 0) return errno;
  target->assign(text, static_cast<size_t>(length));
  return 0;
}

}  // namespace driftwood::os
