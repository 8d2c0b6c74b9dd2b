// Files beneath a folder, for code that is not trusted: no path leaves the folder.
//
// A path is resolved by us, one component at a time, on open descriptors and without following links in the
// system: "..", absolute paths and links (expanded here, at most 40) cannot climb above the root, whatever is
// renamed meanwhile. Only regular files and folders are opened; nothing here blocks on a pipe or device.
// Functions return 0 or an errno; EXDEV means that the path would leave the folder. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "os/descriptor.h"

namespace driftwood::os {

enum class FileKind : uint8_t { kUnknown, kBlockDevice, kCharacterDevice, kFolder, kRegular, kSocket, kLink };

struct FileInfo {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t links = 0;
  uint64_t size_bytes = 0;
  uint64_t accessed_ns = 0;  // since 1970
  uint64_t modified_ns = 0;
  uint64_t changed_ns = 0;
  FileKind kind = FileKind::kUnknown;
};

struct OpenMode {
  bool read = false;
  bool write = false;
  bool create = false;
  bool exclusive = false;
  bool truncate = false;
  bool append = false;
  bool synchronous = false;
  bool must_be_folder = false;
  bool follow_last = true;  // the last component may be a link
};

// A time to set: leave it, the present, or nanoseconds since 1970.
struct TimeChange {
  enum class Kind : uint8_t { kKeep, kNow, kSet } kind = Kind::kKeep;
  uint64_t ns = 0;
};

struct FolderEntry {
  std::string name;
  uint64_t inode = 0;
  FileKind kind = FileKind::kUnknown;
};

// The root itself, by a host path that is trusted.
int open_root_folder(const std::string& host_path, Descriptor* out);

int open_beneath(int root, const std::string& path, const OpenMode& mode, Descriptor* out, FileKind* kind);
int info_beneath(int root, const std::string& path, bool follow_last, FileInfo* out);
int set_times_beneath(int root, const std::string& path, bool follow_last, TimeChange accessed, TimeChange modified);
int make_folder_beneath(int root, const std::string& path);
int remove_folder_beneath(int root, const std::string& path);
int remove_file_beneath(int root, const std::string& path);
int rename_beneath(int from_root, const std::string& from, int to_root, const std::string& to);
int hard_link_beneath(int from_root, const std::string& from, int to_root, const std::string& to);
// `target` is text: EPERM if it is absolute.
int make_link_beneath(int root, const std::string& target, const std::string& path);
int read_link_beneath(int root, const std::string& path, std::string* target);

// On open descriptors. `done` is the count of bytes; 0 at the end of the file.
int info_of(int fd, FileInfo* out);
int set_times_of(int fd, TimeChange accessed, TimeChange modified);
int set_size_of(int fd, uint64_t bytes);
int sync_file(int fd, bool data_only);
int set_append(int fd, bool append);
int read_some(int fd, std::span<uint8_t> into, size_t* done);
int write_some(int fd, std::span<const uint8_t> from, size_t* done);
int read_some_at(int fd, std::span<uint8_t> into, uint64_t offset, size_t* done);
int write_some_at(int fd, std::span<const uint8_t> from, uint64_t offset, size_t* done);
enum class SeekFrom : uint8_t { kStart, kCurrent, kEnd };
int seek(int fd, int64_t offset, SeekFrom from, uint64_t* position);
// "." and ".." first, then the names in byte order. EFBIG past `max_entries`.
int list_folder(int fd, size_t max_entries, std::vector<FolderEntry>* out);

}  // namespace driftwood::os
