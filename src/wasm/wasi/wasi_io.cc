// Reading, writing, seeking and listing.
#include <algorithm>

#include <cerrno>

#include "wasm/wasi/wasi_files.h"
#include "wasm/wasi/wasi_functions.h"

namespace driftwood::wasm::wasi {
namespace {

using Kind = WasiDescriptor::Kind;

constexpr size_t kMaxFolderEntries = 65536;
constexpr uint64_t kMaxTransferBytes = 0x7fffffff;  // the count is a u32 and some guests take it for an i32

// The buffers of one call, all of them checked before the first byte moves.
Errno load_buffers(WasiCall& call, uint32_t iovecs, uint32_t count, std::vector<std::span<uint8_t>>* out) {
  if (count > kMaxIovecs) return Errno::kInval;
  const uint8_t* at = call.range(iovecs, uint64_t{count} * kIovecBytes);
  if (at == nullptr) return Errno::kFault;
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i, at += kIovecBytes) {
    uint32_t pointer = 0;
    uint32_t length = 0;
    std::memcpy(&pointer, at, 4);
    std::memcpy(&length, at + 4, 4);
    uint8_t* data = call.range(pointer, length);
    if (data == nullptr) return Errno::kFault;
    total += length;
    if (total > kMaxTransferBytes) return Errno::kInval;
    if (length != 0) out->push_back({data, length});
  }
  return Errno::kSuccess;
}

// Moves the buffers one by one until one is short. An error after the first byte is told by the next call.
template <typename Move>
Errno move_all(const std::vector<std::span<uint8_t>>& buffers, uint32_t* moved, Move move) {
  *moved = 0;
  for (const std::span<uint8_t> buffer : buffers) {
    size_t done = 0;
    const int error = move(buffer, *moved, &done);
    if (error != 0) return *moved == 0 ? errno_of(error) : Errno::kSuccess;
    *moved += static_cast<uint32_t>(done);
    if (done < buffer.size()) break;
  }
  return Errno::kSuccess;
}

Errno write_to_sink(WasiCall& call, Kind kind, const std::vector<std::span<uint8_t>>& buffers, uint32_t* moved) {
  const auto& sink = kind == Kind::kStdout ? call.state().options().stdout_sink : call.state().options().stderr_sink;
  *moved = 0;
  for (const std::span<uint8_t> buffer : buffers) {
    if (sink && !sink({reinterpret_cast<const char*>(buffer.data()), buffer.size()})) {
      return *moved == 0 ? errno_of(ENOSPC) : Errno::kSuccess;
    }
    *moved += static_cast<uint32_t>(buffer.size());
  }
  return Errno::kSuccess;
}

// What every read and write begins with: descriptor, buffers, and a place for the count.
struct Transfer {
  WasiDescriptor* fd = nullptr;
  std::vector<std::span<uint8_t>> buffers;
  uint32_t moved = 0;
  Errno error;

  Transfer(WasiCall& call, uint64_t fd_slot, uint64_t needed, uint64_t iovecs, uint64_t count, uint64_t result_at) {
    error = call.descriptor(u32(fd_slot), needed, &fd);
    if (error == Errno::kSuccess && call.range(u32(result_at), 4) == nullptr) error = Errno::kFault;
    if (error == Errno::kSuccess) error = load_buffers(call, u32(iovecs), u32(count), &buffers);
  }
  Errno finish(WasiCall& call, Errno outcome, uint64_t result_at) {
    if (outcome == Errno::kSuccess) call.store<uint32_t>(u32(result_at), moved);
    return outcome;
  }
};

}  // namespace

Errno fd_read(WasiCall& call, const uint64_t* a) {
  Transfer t(call, a[0], rights::kFdRead, a[1], a[2], a[3]);
  DW_WASI_TRY(t.error);
  if (t.fd->kind == Kind::kStdin) return t.finish(call, Errno::kSuccess, a[3]);  // always at its end
  const int file = t.fd->file.get();
  const Errno outcome = move_all(t.buffers, &t.moved, [&](std::span<uint8_t> buffer, uint32_t, size_t* done) {
    return os::read_some(file, buffer, done);
  });
  return t.finish(call, outcome, a[3]);
}

Errno fd_write(WasiCall& call, const uint64_t* a) {
  Transfer t(call, a[0], rights::kFdWrite, a[1], a[2], a[3]);
  DW_WASI_TRY(t.error);
  if (t.fd->kind == Kind::kStdout || t.fd->kind == Kind::kStderr) {
    return t.finish(call, write_to_sink(call, t.fd->kind, t.buffers, &t.moved), a[3]);
  }
  const int file = t.fd->file.get();
  const Errno outcome = move_all(t.buffers, &t.moved, [&](std::span<uint8_t> buffer, uint32_t, size_t* done) {
    return os::write_some(file, buffer, done);
  });
  return t.finish(call, outcome, a[3]);
}

Errno fd_pread(WasiCall& call, const uint64_t* a) {
  Transfer t(call, a[0], rights::kFdRead | rights::kFdSeek, a[1], a[2], a[4]);
  DW_WASI_TRY(t.error);
  if (t.fd->kind != Kind::kFile) return Errno::kSpipe;
  const int file = t.fd->file.get();
  const uint64_t offset = a[3];
  const Errno outcome = move_all(t.buffers, &t.moved, [&](std::span<uint8_t> buffer, uint32_t moved, size_t* done) {
    return os::read_some_at(file, buffer, offset + moved, done);
  });
  return t.finish(call, outcome, a[4]);
}

Errno fd_pwrite(WasiCall& call, const uint64_t* a) {
  Transfer t(call, a[0], rights::kFdWrite | rights::kFdSeek, a[1], a[2], a[4]);
  DW_WASI_TRY(t.error);
  if (t.fd->kind != Kind::kFile) return Errno::kSpipe;
  const int file = t.fd->file.get();
  const uint64_t offset = a[3];
  const Errno outcome = move_all(t.buffers, &t.moved, [&](std::span<uint8_t> buffer, uint32_t moved, size_t* done) {
    return os::write_some_at(file, buffer, offset + moved, done);
  });
  return t.finish(call, outcome, a[4]);
}

Errno fd_seek(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  const uint32_t whence = u32(a[2]);
  DW_WASI_TRY(call.descriptor(u32(a[0]), 0, &fd));
  if (fd->kind != Kind::kFile) return fd->kind == Kind::kFolder ? Errno::kBadf : Errno::kSpipe;
  DW_WASI_TRY(call.descriptor(u32(a[0]), rights::kFdSeek, &fd));
  if (whence > 2) return Errno::kInval;
  if (call.range(u32(a[3]), 8) == nullptr) return Errno::kFault;
  uint64_t position = 0;
  const int error = os::seek(fd->file.get(), static_cast<int64_t>(a[1]), static_cast<os::SeekFrom>(whence), &position);
  if (error != 0) return errno_of(error);
  call.store<uint64_t>(u32(a[3]), position);
  return Errno::kSuccess;
}

Errno fd_tell(WasiCall& call, const uint64_t* a) {
  const uint64_t args[4] = {a[0], 0, static_cast<uint64_t>(os::SeekFrom::kCurrent), a[1]};
  return fd_seek(call, args);
}

// Entries: next cookie u64 @0, inode u64 @8, name length u32 @16, type u8 @20, then the name. The last entry may
// be cut off; a buffer that is not full means the end.
Errno fd_readdir(WasiCall& call, const uint64_t* a) {
  WasiDescriptor* fd = nullptr;
  DW_WASI_TRY(call.folder(u32(a[0]), rights::kFdReaddir, &fd));
  const uint32_t capacity = u32(a[2]);
  const uint64_t cookie = a[3];
  uint8_t* out = call.range(u32(a[1]), capacity);
  if (out == nullptr || call.range(u32(a[4]), 4) == nullptr) return Errno::kFault;
  if (cookie == 0 || fd->listing.empty()) {
    const int error = os::list_folder(fd->file.get(), kMaxFolderEntries, &fd->listing);
    if (error != 0) return errno_of(error);
  }
  uint32_t used = 0;
  for (uint64_t i = cookie; i < fd->listing.size() && used < capacity; ++i) {
    const os::FolderEntry& entry = fd->listing[i];
    uint8_t record[kDirentBytes] = {};
    const uint64_t next = i + 1;
    const auto name_bytes = static_cast<uint32_t>(entry.name.size());
    std::memcpy(record, &next, 8);
    std::memcpy(record + 8, &entry.inode, 8);
    std::memcpy(record + 16, &name_bytes, 4);
    record[20] = static_cast<uint8_t>(file_type_of(entry.kind));
    const auto put = [&](const void* from, size_t bytes) {
      const size_t fits = std::min<size_t>(bytes, capacity - used);
      std::memcpy(out + used, from, fits);
      used += static_cast<uint32_t>(fits);
    };
    put(record, sizeof record);
    put(entry.name.data(), entry.name.size());
  }
  call.store<uint32_t>(u32(a[4]), used);
  return Errno::kSuccess;
}

}  // namespace driftwood::wasm::wasi
