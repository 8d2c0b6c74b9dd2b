// Descriptors: their state, their files' attributes, closing and renaming them.
#include "wasm/wasi/wasi_files.h"
#include "wasm/wasi/wasi_functions.h"

namespace driftwood::wasm::wasi {
namespace {

using Kind = WasiDescriptor::Kind;

FileType type_of(const WasiDescriptor& fd) {
  if (fd.kind == Kind::kFolder) return FileType::kDirectory;
  return fd.kind == Kind::kFile ? FileType::kRegularFile : FileType::kCharacterDevice;
}

bool has_file(const WasiDescriptor& fd) { return fd.kind == Kind::kFile || fd.kind == Kind::kFolder; }

}  // namespace

Errno fd_advise(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), 0, &fd));
  if (fd->kind != Kind::kFile) return fd->kind == Kind::kFolder ? Errno::kBadf : Errno::kSpipe;
  return u32(a[3]) <= 5 ? Errno::kSuccess : Errno::kInval;
}

// Not offered: it would take disk space that nothing accounts for.
Errno fd_allocate(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), rights::kFdAllocate, &fd));
  return Errno::kNotsup;
}

Errno fd_close(WasiCall& call, const uint64_t* a) {
  if (call.state().find(u32(a[0])) == nullptr) return Errno::kBadf;
  call.state().close(u32(a[0]));
  return Errno::kSuccess;
}

Errno fd_datasync(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), rights::kFdDatasync, &fd));
  return has_file(*fd) ? errno_of(os::sync_file(fd->file.get(), true)) : Errno::kInval;
}

Errno fd_sync(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), rights::kFdSync, &fd));
  return has_file(*fd) ? errno_of(os::sync_file(fd->file.get(), false)) : Errno::kInval;
}

// Layout: type u8 @0, flags u16 @2, rights u64 @8, inheriting u64 @16. A folder shows every right as inheriting,
// so that a guest asks for what it wants and a refusal comes at path_open, by name.
Errno fd_fdstat_get(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), 0, &fd));
  uint8_t* out = call.range(u32(a[1]), kFdstatBytes);
  if (out == nullptr) return Errno::kFault;
  const uint64_t inheriting = fd->kind == Kind::kFolder ? rights::kAll : 0;
  std::memset(out, 0, kFdstatBytes);
  out[0] = static_cast<uint8_t>(type_of(*fd));
  std::memcpy(out + 2, &fd->flags, 2);
  std::memcpy(out + 8, &fd->rights, 8);
  std::memcpy(out + 16, &inheriting, 8);
  return Errno::kSuccess;
}

Errno fd_fdstat_set_flags(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), 0, &fd));
  const uint32_t flags = u32(a[1]);
  if (flags > fdflags::kAll) return Errno::kInval;
  // Synchronous writing can only be had at path_open.
  const uint32_t changeable = fdflags::kAppend | fdflags::kNonblock;
  if (((flags ^ fd->flags) & ~changeable) != 0) return Errno::kNotsup;
  if (fd->kind == Kind::kFile) {
    const int error = os::set_append(fd->file.get(), (flags & fdflags::kAppend) != 0);
    if (error != 0) return errno_of(error);
  }
  fd->flags = static_cast<uint16_t>(flags);
  return Errno::kSuccess;
}

// Rights can only be given up.
Errno fd_fdstat_set_rights(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), 0, &fd));
  if ((a[1] & ~fd->rights) != 0 || (a[2] & ~fd->inheriting) != 0) return Errno::kNotcapable;
  fd->rights = a[1];
  fd->inheriting = a[2];
  return Errno::kSuccess;
}

Errno fd_filestat_get(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), rights::kFdFilestatGet, &fd));
  if (call.range(u32(a[1]), kFilestatBytes) == nullptr) return Errno::kFault;
  os::FileInfo info;
  info.kind = os::FileKind::kCharacterDevice;
  if (has_file(*fd)) {
    const int error = os::info_of(fd->file.get(), &info);
    if (error != 0) return errno_of(error);
  }
  return store_filestat(call, u32(a[1]), info);
}

Errno fd_filestat_set_size(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), rights::kFdFilestatSetSize, &fd));
  if (fd->kind != Kind::kFile) return Errno::kInval;
  return errno_of(os::set_size_of(fd->file.get(), a[1]));
}

Errno fd_filestat_set_times(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.descriptor(u32(a[0]), rights::kFdFilestatSetTimes, &fd));
  TimeChanges times;
  DW_WASI_TRY(time_changes(call.state(), a[1], a[2], u32(a[3]), &times));
  if (!has_file(*fd)) return Errno::kInval;
  return errno_of(os::set_times_of(fd->file.get(), times.accessed, times.modified));
}

Errno fd_prestat_get(WasiCall& call, const uint64_t* a) {
  const WasiDescriptor* fd = call.state().find(u32(a[0]));
  if (fd == nullptr || !fd->granted) return Errno::kBadf;
  uint8_t* out = call.range(u32(a[1]), kPrestatBytes);
  if (out == nullptr) return Errno::kFault;
  const auto length = static_cast<uint32_t>(fd->guest_path.size());
  std::memset(out, 0, kPrestatBytes);  // tag 0: a folder
  std::memcpy(out + 4, &length, 4);
  return Errno::kSuccess;
}

Errno fd_prestat_dir_name(WasiCall& call, const uint64_t* a) {
  const WasiDescriptor* fd = call.state().find(u32(a[0]));
  if (fd == nullptr || !fd->granted) return Errno::kBadf;
  uint8_t* out = call.range(u32(a[1]), u32(a[2]));
  if (out == nullptr) return Errno::kFault;
  if (u32(a[2]) < fd->guest_path.size()) return Errno::kNametoolong;
  std::memcpy(out, fd->guest_path.data(), fd->guest_path.size());
  return Errno::kSuccess;
}

Errno fd_renumber(WasiCall& call, const uint64_t* a) {
  const WasiDescriptor* from = call.state().find(u32(a[0]));
  const WasiDescriptor* to = call.state().find(u32(a[1]));
  if (from == nullptr || to == nullptr) return Errno::kBadf;
  call.state().renumber(u32(a[0]), u32(a[1]));
  return Errno::kSuccess;
}

}  // namespace driftwood::wasm::wasi
