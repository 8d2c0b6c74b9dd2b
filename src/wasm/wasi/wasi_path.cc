// Paths beneath granted folders. os/folder.h sees to it that none leaves its folder.
#include "wasm/wasi/wasi_files.h"
#include "wasm/wasi/wasi_functions.h"

namespace driftwood::wasm::wasi {
namespace {

using Kind = WasiDescriptor::Kind;

// A folder and a path beneath it, both checked.
struct Place {
  WasiDescriptor* folder = nullptr;
  std::string path;
  int root() const { return folder->file.get(); }
};

Errno find_place(WasiCall& call, uint64_t fd, uint64_t needed, uint64_t pointer, uint64_t length, Place* place) {
  DW_WASI_TRY(call.folder(u32(fd), needed, &place->folder));
  return call.path(u32(pointer), u32(length), &place->path);
}

bool follows(uint64_t lookup_flags) { return (u32(lookup_flags) & kLookupSymlinkFollow) != 0; }

std::string join(const std::string& folder, const std::string& path) {
  if (folder.empty() || folder.back() == '/') return folder + path;
  return folder + "/" + path;
}

struct OpenFlags {
  uint32_t open;    // oflags
  uint32_t fd;      // fdflags
  uint64_t wanted;  // rights
};

Errno open_mode(const WasiDescriptor& folder, const OpenFlags& flags, bool follow, os::OpenMode* mode) {
  if (flags.open > oflags::kAll || flags.fd > fdflags::kAll) return Errno::kInval;
  mode->read = (flags.wanted & (rights::kFdRead | rights::kFdReaddir)) != 0;
  mode->write = (flags.wanted & (rights::kFdWrite | rights::kFdAllocate)) != 0;
  mode->create = (flags.open & oflags::kCreate) != 0;
  mode->exclusive = (flags.open & oflags::kExclusive) != 0;
  mode->truncate = (flags.open & oflags::kTruncate) != 0;
  mode->must_be_folder = (flags.open & oflags::kDirectory) != 0;
  mode->append = (flags.fd & fdflags::kAppend) != 0;
  mode->synchronous = (flags.fd & (fdflags::kDsync | fdflags::kRsync | fdflags::kSync)) != 0;
  mode->follow_last = follow;
  if (mode->must_be_folder) {
    if (mode->create || mode->truncate) return Errno::kInval;
    mode->write = false;  // C libraries ask for every right of a folder
  }
  const bool changes = mode->write || mode->create || mode->truncate;
  if (changes && (folder.inheriting & rights::kFdWrite) == 0) return Errno::kAccess;
  if (mode->create && (folder.rights & rights::kPathCreateFile) == 0) return Errno::kNotcapable;
  if (mode->truncate && (folder.rights & rights::kPathFilestatSetSize) == 0) return Errno::kNotcapable;
  // Truncating needs a writable descriptor on some systems; the guest's right to write is not widened by it.
  if (mode->truncate) mode->write = true;
  return Errno::kSuccess;
}

}  // namespace

Errno path_open(WasiCall& call, const uint64_t* a) {
  Place place;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathOpen, a[2], a[3], &place));
  if (call.range(u32(a[8]), 4) == nullptr) return Errno::kFault;
  os::OpenMode mode;
  const OpenFlags flags{u32(a[4]), u32(a[7]), a[5]};
  DW_WASI_TRY(open_mode(*place.folder, flags, follows(a[1]), &mode));
  WasiDescriptor opened;
  os::FileKind kind = os::FileKind::kUnknown;
  const int error = os::open_beneath(place.root(), place.path, mode, &opened.file, &kind);
  if (error != 0) return errno_of(error);
  opened.kind = kind == os::FileKind::kFolder ? Kind::kFolder : Kind::kFile;
  const uint64_t possible = opened.kind == Kind::kFolder ? rights::kFolder : rights::kFile;
  const uint64_t from_folder = place.folder->inheriting | (place.folder->rights & rights::kPaths);
  opened.rights = a[5] & from_folder & possible;
  opened.inheriting = opened.kind == Kind::kFolder ? a[6] & place.folder->inheriting : 0;
  opened.flags = static_cast<uint16_t>(flags.fd);
  opened.guest_path = join(place.folder->guest_path, place.path);
  uint32_t fd = 0;
  DW_WASI_TRY(call.state().insert(std::move(opened), &fd));
  call.store<uint32_t>(u32(a[8]), fd);
  return Errno::kSuccess;
}

Errno path_create_directory(WasiCall& call, const uint64_t* a) {
  Place place;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathCreateDirectory, a[1], a[2], &place));
  return errno_of(os::make_folder_beneath(place.root(), place.path));
}

Errno path_remove_directory(WasiCall& call, const uint64_t* a) {
  Place place;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathRemoveDirectory, a[1], a[2], &place));
  return errno_of(os::remove_folder_beneath(place.root(), place.path));
}

Errno path_unlink_file(WasiCall& call, const uint64_t* a) {
  Place place;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathUnlinkFile, a[1], a[2], &place));
  return errno_of(os::remove_file_beneath(place.root(), place.path));
}

Errno path_filestat_get(WasiCall& call, const uint64_t* a) {
  Place place;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathFilestatGet, a[2], a[3], &place));
  if (call.range(u32(a[4]), kFilestatBytes) == nullptr) return Errno::kFault;
  os::FileInfo info;
  const int error = os::info_beneath(place.root(), place.path, follows(a[1]), &info);
  return error != 0 ? errno_of(error) : store_filestat(call, u32(a[4]), info);
}

Errno path_filestat_set_times(WasiCall& call, const uint64_t* a) {
  Place place;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathFilestatSetTimes, a[2], a[3], &place));
  TimeChanges times;
  DW_WASI_TRY(time_changes(call.state(), a[4], a[5], u32(a[6]), &times));
  return errno_of(
      os::set_times_beneath(place.root(), place.path, follows(a[1]), times.accessed, times.modified));
}

Errno path_link(WasiCall& call, const uint64_t* a) {
  Place from;
  Place to;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathLinkSource, a[2], a[3], &from));
  DW_WASI_TRY(find_place(call, a[4], rights::kPathLinkTarget, a[5], a[6], &to));
  if (follows(a[1])) return Errno::kInval;
  return errno_of(os::hard_link_beneath(from.root(), from.path, to.root(), to.path));
}

Errno path_rename(WasiCall& call, const uint64_t* a) {
  Place from;
  Place to;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathRenameSource, a[1], a[2], &from));
  DW_WASI_TRY(find_place(call, a[3], rights::kPathRenameTarget, a[4], a[5], &to));
  return errno_of(os::rename_beneath(from.root(), from.path, to.root(), to.path));
}

Errno path_symlink(WasiCall& call, const uint64_t* a) {
  std::string target;
  Place place;
  DW_WASI_TRY(find_place(call, a[2], rights::kPathSymlink, a[3], a[4], &place));
  DW_WASI_TRY(call.path(u32(a[0]), u32(a[1]), &target));
  return errno_of(os::make_link_beneath(place.root(), target, place.path));
}

// The text is cut off at the end of the guest's buffer, as readlink(2) does.
Errno path_readlink(WasiCall& call, const uint64_t* a) {
  Place place;
  DW_WASI_TRY(find_place(call, a[0], rights::kPathReadlink, a[1], a[2], &place));
  uint8_t* out = call.range(u32(a[3]), u32(a[4]));
  if (out == nullptr || call.range(u32(a[5]), 4) == nullptr) return Errno::kFault;
  std::string target;
  const int error = os::read_link_beneath(place.root(), place.path, &target);
  if (error != 0) return errno_of(error);
  const size_t bytes = std::min<size_t>(target.size(), u32(a[4]));
  std::memcpy(out, target.data(), bytes);
  call.store<uint32_t>(u32(a[5]), static_cast<uint32_t>(bytes));
  return Errno::kSuccess;
}

}  // namespace driftwood::wasm::wasi
