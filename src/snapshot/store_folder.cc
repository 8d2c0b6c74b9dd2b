#include "snapshot/store_folder.h"

#include <algorithm>

#include "os/folder_changes.h"
#include "os/mapped_file.h"
#include "snapshot/digest.h"
#include "snapshot/manifest.h"
#include "snapshot/store.h"
#include "snapshot/store_damage.h"

namespace driftwood::snapshot {
namespace {

constexpr size_t kMaxNameLength = 200;
constexpr std::string_view kFormatStart = "driftwood store ";

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool is_hash(std::string_view text) {
  Digest digest;
  return from_hex(text, &digest);
}

std::string stamp_text(const os::FileStamp& s) {
  std::string text = "stamp 0";
  for (const uint64_t value : {s.device, s.inode, s.size_bytes, static_cast<uint64_t>(s.modified_ns),
                               static_cast<uint64_t>(s.changed_ns)}) {
    text += ' ' + std::to_string(value);
  }
  return text + "\n";
}

// Read, not mapped: taking a mapping away costs more than reading all of these. not_found if it is not there;
// something else in its place is damage.
Result<std::string> read_small_file(const std::string& path) {
  auto text = os::read_text_file(path, 4096, false);
  const Code code = text.status().code();
  if (code == Code::kResourceExhausted) return data_loss(path + ": is too large");
  if (code == Code::kNotFound || text.is_ok()) return text;
  return as_damage(text.status());
}

Status check_format(const std::string& path) {
  DW_ASSIGN_OR_RETURN(const std::string text, read_small_file(path));
  if (text == std::string(kFormatStart) + std::string(kStoreFormat) + "\n") return Status::ok();
  if (!text.starts_with(kFormatStart) || !text.ends_with('\n')) {
    return data_loss(path + ": damaged: does not say what store this is");
  }
  const std::string number =
      text.substr(kFormatStart.size(), std::min<size_t>(text.find('\n'), 40) - kFormatStart.size());
  return failed_precondition(path + ": is of store format " + number + ", this program reads format " +
                             std::string(kStoreFormat));
}

// Makes a store of a folder that is missing or empty.
Status make_store(const StoreFolder& folder) {
  DW_RETURN_IF_ERROR(os::make_private_folders(folder.path()));
  DW_ASSIGN_OR_RETURN(const std::vector<std::string> there, os::names_in_folder(folder.path()));
  for (const std::string& name : there) {
    if (!is_temporary(name)) {
      return failed_precondition(folder.path() + ": holds '" + name +
                                 "' and is not a store; it is left as it is");
    }
  }
  const std::string text = std::string(kFormatStart) + std::string(kStoreFormat) + "\n";
  return os::write_file_atomically(folder.path() + "/format", bytes_of(text), os::FileAccess::kPrivate);
}

}  // namespace

bool same_stamp(const os::FileStamp& a, const os::FileStamp& b) {
  return a.device == b.device && a.inode == b.inode && a.size_bytes == b.size_bytes &&
         a.modified_ns == b.modified_ns && a.changed_ns == b.changed_ns;
}

bool is_temporary(std::string_view file_name) {
  return file_name.starts_with('.') && file_name.find(".tmp-") != std::string_view::npos;
}

Result<StoreFolder> StoreFolder::open(const std::string& path, bool create, bool read_only) {
  if (path.empty()) return invalid_argument("the path of a store is empty");
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  const StoreFolder folder(trimmed, read_only);
  Status format = check_format(folder.path_ + "/format");
  if (format.code() == Code::kNotFound && create && !read_only) {
    DW_RETURN_IF_ERROR(make_store(folder));
    format = check_format(folder.path_ + "/format");
  }
  if (format.code() == Code::kNotFound) return not_found(path + ": is not a store (it has no file 'format')");
  DW_RETURN_IF_ERROR(format);
  if (!read_only) DW_RETURN_IF_ERROR(folder.make_parts());
  return folder;
}

// A crash may have come between the format file and these.
Status StoreFolder::make_parts() const {
  bool made = false;
  for (const std::string& part : {packs(), snapshots(), names(), stamps()}) {
    if (os::is_folder(part)) continue;
    DW_RETURN_IF_ERROR(os::make_private_folder(part));
    made = true;
  }
  return made ? os::flush_folder(path_) : Status::ok();
}

Status StoreFolder::check_writable() const {
  return read_only_ ? permission_denied(path_ + ": the store is open for reading only") : Status::ok();
}

Result<os::FileLock> StoreFolder::lock_for_reading() const {
  auto lock = os::FileLock::acquire(path_ + "/lock", os::FileLock::Kind::kShared, !read_only_);
  if (lock.is_ok()) return lock;
  const Code code = lock.status().code();
  if (code == Code::kNotFound || code == Code::kPermissionDenied) return os::FileLock();
  return as_damage(lock.status());
}

Result<os::FileLock> StoreFolder::lock_for_writing(os::FileLock::Kind kind) const {
  DW_RETURN_IF_ERROR(check_writable());
  auto lock = os::FileLock::acquire(path_ + "/lock", kind, true);
  return lock.is_ok() ? std::move(lock) : as_damage(lock.status());
}

bool StoreFolder::stamp_matches(StoreFile kind, const std::string& hash, const os::FileStamp& stamp) const {
  const Result<std::string> text = read_small_file(stamp_file(kind, hash));
  return text.is_ok() && *text == stamp_text(stamp);
}

void StoreFolder::record_stamp(StoreFile kind, const std::string& hash, const os::FileStamp& stamp) const {
  if (read_only_) return;
  auto file = os::AtomicFile::create(stamps() + kNewFile, os::FileAccess::kPrivate);
  if (!file.is_ok() || !file->write(bytes_of(stamp_text(stamp))).is_ok()) return;
  (void)file->commit_as(stamp_file(kind, hash), os::AtomicFile::Durability::kUnflushed).is_ok();
}

void StoreFolder::remove_stamp(StoreFile kind, const std::string& hash) const {
  if (!read_only_) (void)os::remove_file(stamp_file(kind, hash)).is_ok();
}

Result<StoreFolder::Listing> StoreFolder::list(StoreFile kind) const {
  DW_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      os::names_in_folder(kind == StoreFile::kPack ? packs() : snapshots()));
  Listing listing;
  for (const std::string& name : names) {
    if (is_hash(name)) listing.hashes.push_back(name);
    if (is_temporary(name)) listing.temporary.push_back(name);
  }
  return listing;
}

bool StoreFolder::is_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength || name[0] == '.' || name[0] == '-' || is_hash(name)) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

Status StoreFolder::check_name(const std::string& name) const {
  if (is_name(name)) return Status::ok();
  return invalid_argument(path_ + ": '" + name.substr(0, 80) + "' can't name a snapshot: " + kNameRule);
}

Result<std::vector<std::string>> StoreFolder::list_names() const {
  DW_ASSIGN_OR_RETURN(std::vector<std::string> all, os::names_in_folder(names()));
  std::erase_if(all, [](const std::string& name) { return !is_name(name); });
  return all;
}

Result<std::string> StoreFolder::read_name(const std::string& name) const {
  DW_RETURN_IF_ERROR(check_name(name));
  DW_ASSIGN_OR_RETURN(std::string text, read_small_file(name_file(name)));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (!is_hash(text)) return data_loss(name_file(name) + ": damaged: holds no hash of a snapshot");
  return text;
}

Result<os::AtomicFile> StoreFolder::new_name(const std::string& hash) const {
  DW_ASSIGN_OR_RETURN(os::AtomicFile file,
                      os::AtomicFile::create(names() + kNewFile, os::FileAccess::kPrivate));
  DW_RETURN_IF_ERROR(file.write(bytes_of(hash + "\n")));
  return file;
}

Status StoreFolder::place_name(os::AtomicFile* file, const std::string& name) const {
  DW_RETURN_IF_ERROR(check_name(name));
  const Result<os::FileStamp> committed = file->commit_as(name_file(name));
  return committed.is_ok() ? Status::ok() : committed.status();
}

Status StoreFolder::write_name(const std::string& name, const std::string& hash) const {
  DW_ASSIGN_OR_RETURN(os::AtomicFile file, new_name(hash));
  return place_name(&file, name);
}

Status StoreFolder::remove_name(const std::string& name) const {
  DW_RETURN_IF_ERROR(check_name(name));
  DW_RETURN_IF_ERROR(os::remove_file(name_file(name)));
  return os::flush_folder(names());
}

}  // namespace driftwood::snapshot
