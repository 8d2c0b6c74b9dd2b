#include "wasm/wasi/wasi_files.h"

namespace driftwood::wasm {

FileType file_type_of(os::FileKind kind) {
  switch (kind) {
    case os::FileKind::kUnknown: return FileType::kUnknown;
    case os::FileKind::kBlockDevice: return FileType::kBlockDevice;
    case os::FileKind::kCharacterDevice: return FileType::kCharacterDevice;
    case os::FileKind::kFolder: return FileType::kDirectory;
    case os::FileKind::kRegular: return FileType::kRegularFile;
    case os::FileKind::kSocket: return FileType::kSocket;
    case os::FileKind::kLink: return FileType::kSymbolicLink;
  }
  return FileType::kUnknown;
}

// Layout: device u64 @0, inode u64 @8, type u8 @16, links u64 @24, size u64 @32, times u64 @40, @48, @56.
Errno store_filestat(WasiCall& call, uint32_t pointer, const os::FileInfo& info) {
  uint8_t* out = call.range(pointer, kFilestatBytes);
  if (out == nullptr) return Errno::kFault;
  std::memset(out, 0, kFilestatBytes);
  std::memcpy(out, &info.device, 8);
  std::memcpy(out + 8, &info.inode, 8);
  out[16] = static_cast<uint8_t>(file_type_of(info.kind));
  std::memcpy(out + 24, &info.links, 8);
  std::memcpy(out + 32, &info.size_bytes, 8);
  std::memcpy(out + 40, &info.accessed_ns, 8);
  std::memcpy(out + 48, &info.modified_ns, 8);
  std::memcpy(out + 56, &info.changed_ns, 8);
  return Errno::kSuccess;
}

Errno time_changes(const WasiState& state, uint64_t accessed_ns, uint64_t modified_ns, uint32_t flags,
                   TimeChanges* out) {
  using Kind = os::TimeChange::Kind;
  constexpr uint32_t kBothAccess = fstflags::kAccess | fstflags::kAccessNow;
  constexpr uint32_t kBothModify = fstflags::kModify | fstflags::kModifyNow;
  if (flags > fstflags::kAll || (flags & kBothAccess) == kBothAccess || (flags & kBothModify) == kBothModify) {
    return Errno::kInval;
  }
  // "Now" is the guest's clock, which may be a recorded one.
  const auto change = [&](uint32_t set, uint32_t now, uint64_t ns) {
    if ((flags & now) != 0) return os::TimeChange{Kind::kSet, state.clock_ns(kClockRealtime)};
    return (flags & set) != 0 ? os::TimeChange{Kind::kSet, ns} : os::TimeChange{};
  };
  out->accessed = change(fstflags::kAccess, fstflags::kAccessNow, accessed_ns);
  out->modified = change(fstflags::kModify, fstflags::kModifyNow, modified_ns);
  return Errno::kSuccess;
}

}  // namespace driftwood::wasm
