// The 46 functions of wasi_snapshot_preview1, as host imports. One table (wasi_functions.cc), one file per group.
#pragma once

#include <span>

#include "wasm/runtime.h"
#include "wasm/wasi/wasi_call.h"

namespace driftwood::wasm {

// Made once; lives for ever.
std::span<const HostImport> wasi_functions();

namespace wasi {

// Arguments are raw slots in the order of the signature; the result is the guest's error code.
using Function = Errno (*)(WasiCall&, const uint64_t* args);

// wasi_environment.cc
Errno args_get(WasiCall&, const uint64_t*);
Errno args_sizes_get(WasiCall&, const uint64_t*);
Errno environ_get(WasiCall&, const uint64_t*);
Errno environ_sizes_get(WasiCall&, const uint64_t*);
Errno clock_res_get(WasiCall&, const uint64_t*);
Errno clock_time_get(WasiCall&, const uint64_t*);
Errno random_get(WasiCall&, const uint64_t*);
Errno sched_yield(WasiCall&, const uint64_t*);
Errno proc_raise(WasiCall&, const uint64_t*);
Errno not_supported(WasiCall&, const uint64_t*);  // sockets

// wasi_poll.cc
Errno poll_oneoff(WasiCall&, const uint64_t*);

// wasi_io.cc
Errno fd_pread(WasiCall&, const uint64_t*);
Errno fd_pwrite(WasiCall&, const uint64_t*);
Errno fd_read(WasiCall&, const uint64_t*);
Errno fd_write(WasiCall&, const uint64_t*);
Errno fd_seek(WasiCall&, const uint64_t*);
Errno fd_tell(WasiCall&, const uint64_t*);
Errno fd_readdir(WasiCall&, const uint64_t*);

// wasi_descriptor.cc
Errno fd_advise(WasiCall&, const uint64_t*);
Errno fd_allocate(WasiCall&, const uint64_t*);
Errno fd_close(WasiCall&, const uint64_t*);
Errno fd_datasync(WasiCall&, const uint64_t*);
Errno fd_sync(WasiCall&, const uint64_t*);
Errno fd_fdstat_get(WasiCall&, const uint64_t*);
Errno fd_fdstat_set_flags(WasiCall&, const uint64_t*);
Errno fd_fdstat_set_rights(WasiCall&, const uint64_t*);
Errno fd_filestat_get(WasiCall&, const uint64_t*);
Errno fd_filestat_set_size(WasiCall&, const uint64_t*);
Errno fd_filestat_set_times(WasiCall&, const uint64_t*);
Errno fd_prestat_get(WasiCall&, const uint64_t*);
Errno fd_prestat_dir_name(WasiCall&, const uint64_t*);
Errno fd_renumber(WasiCall&, const uint64_t*);

// wasi_path.cc
Errno path_create_directory(WasiCall&, const uint64_t*);
Errno path_filestat_get(WasiCall&, const uint64_t*);
Errno path_filestat_set_times(WasiCall&, const uint64_t*);
Errno path_link(WasiCall&, const uint64_t*);
Errno path_open(WasiCall&, const uint64_t*);
Errno path_readlink(WasiCall&, const uint64_t*);
Errno path_remove_directory(WasiCall&, const uint64_t*);
Errno path_rename(WasiCall&, const uint64_t*);
Errno path_symlink(WasiCall&, const uint64_t*);
Errno path_unlink_file(WasiCall&, const uint64_t*);

}  // namespace wasi
}  // namespace driftwood::wasm
