// StoreFolder: where a store's files lie, its locks, names and stamps.
//
// A stamp file (stamps/) holds what the system said of a pack or manifest when the store had written or
// verified it. It proves nothing to anyone who can write the folder; it tells whether the file was touched.
// Losing one costs a verification. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "os/atomic_file.h"
#include "os/file_lock.h"
#include "os/file_stamp.h"

namespace driftwood::snapshot {

enum class StoreFile { kPack, kManifest };

class StoreFolder {
 public:
  // Checks, or with `create` makes, the folder.
  static Result<StoreFolder> open(const std::string& path, bool create, bool read_only);

  const std::string& path() const { return path_; }
  bool read_only() const { return read_only_; }
  Status check_writable() const;

  std::string packs() const { return path_ + "/packs"; }
  std::string snapshots() const { return path_ + "/snapshots"; }
  std::string names() const { return path_ + "/names"; }
  std::string stamps() const { return path_ + "/stamps"; }
  std::string file(StoreFile kind, const std::string& hash) const {
    return (kind == StoreFile::kPack ? packs() : snapshots()) + "/" + hash;
  }
  std::string name_file(const std::string& name) const { return names() + "/" + name; }
  std::string stamp_file(StoreFile kind, const std::string& hash) const {
    return stamps() + (kind == StoreFile::kPack ? "/pack-" : "/snapshot-") + hash;
  }

  // Against gc(). A store that this process may not write is read without one.
  Result<os::FileLock> lock_for_reading() const;
  Result<os::FileLock> lock_for_writing(os::FileLock::Kind kind) const;

  bool stamp_matches(StoreFile kind, const std::string& hash, const os::FileStamp& stamp) const;
  // As well as it goes: a stamp that can't be written is only missing.
  void record_stamp(StoreFile kind, const std::string& hash, const os::FileStamp& stamp) const;
  void remove_stamp(StoreFile kind, const std::string& hash) const;

  // File names in one of the folders that are 64 hex digits; and the others.
  struct Listing {
    std::vector<std::string> hashes;
    std::vector<std::string> temporary;
  };
  Result<Listing> list(StoreFile kind) const;

  static bool is_name(std::string_view name);
  Status check_name(const std::string& name) const;
  Result<std::vector<std::string>> list_names() const;
  // The hash that a name holds. not_found, or data_loss for a file that holds none.
  Result<std::string> read_name(const std::string& name) const;
  Status write_name(const std::string& name, const std::string& hash) const;
  // The same in two steps: a file that holds the hash, and giving it the name, durably.
  Result<os::AtomicFile> new_name(const std::string& hash) const;
  Status place_name(os::AtomicFile* file, const std::string& name) const;
  Status remove_name(const std::string& name) const;

 private:
  StoreFolder(std::string path, bool read_only) : path_(std::move(path)), read_only_(read_only) {}
  Status make_parts() const;
  std::string path_;
  bool read_only_ = false;
};

// What AtomicFile is made for before a file's own name is known.
inline constexpr char kNewFile[] = "/.new";

bool same_stamp(const os::FileStamp& a, const os::FileStamp& b);
// Left behind by a writer that was killed.
bool is_temporary(std::string_view file_name);

}  // namespace driftwood::snapshot
