// What the descriptor and the path functions of WASI share: file attributes in the guest's layout.
#pragma once

#include "os/folder.h"
#include "wasm/wasi/wasi_call.h"

namespace driftwood::wasm {

FileType file_type_of(os::FileKind kind);
Errno store_filestat(WasiCall& call, uint32_t pointer, const os::FileInfo& info);

struct TimeChanges {
  os::TimeChange accessed;
  os::TimeChange modified;
};
// kInval if the flags (fstflags) contradict each other.
Errno time_changes(const WasiState& state, uint64_t accessed_ns, uint64_t modified_ns, uint32_t flags,
                   TimeChanges* out);

}  // namespace driftwood::wasm
