#include "wasm/wasi/wasi_functions.h"

namespace driftwood::wasm {
namespace {

constexpr char kModule[] = "wasi_snapshot_preview1";

template <wasi::Function kFunction>
void enter(CallContext& context, const uint64_t* args, uint64_t* results) {
  auto& host = static_cast<HostCall&>(context);
  WasiCall call(host, host.instance());
  results[0] = static_cast<uint64_t>(kFunction(call, args));
}

void proc_exit(CallContext& context, const uint64_t* args, uint64_t*) {
  static_cast<HostCall&>(context).exit(static_cast<int>(u32(args[0])));
}

// "iIi": an i32, an i64, an i32. Every function but proc_exit returns an error code.
HostImport entry(const char* name, const char* params, HostFunction function, bool returns = true) {
  HostImport import{kModule, name, {}, function};
  for (const char* p = params; *p != '\0'; ++p) {
    import.signature.params.push_back(*p == 'I' ? ValueType::kI64 : ValueType::kI32);
  }
  if (returns) import.signature.results.push_back(ValueType::kI32);
  return import;
}

std::vector<HostImport> make_table() {
  using namespace wasi;  // NOLINT: the table reads like the witx
  return {
      entry("args_get", "ii", enter<args_get>),
      entry("args_sizes_get", "ii", enter<args_sizes_get>),
      entry("environ_get", "ii", enter<environ_get>),
      entry("environ_sizes_get", "ii", enter<environ_sizes_get>),
      entry("clock_res_get", "ii", enter<clock_res_get>),
      entry("clock_time_get", "iIi", enter<clock_time_get>),
      entry("fd_advise", "iIIi", enter<fd_advise>),
      entry("fd_allocate", "iII", enter<fd_allocate>),
      entry("fd_close", "i", enter<fd_close>),
      entry("fd_datasync", "i", enter<fd_datasync>),
      entry("fd_fdstat_get", "ii", enter<fd_fdstat_get>),
      entry("fd_fdstat_set_flags", "ii", enter<fd_fdstat_set_flags>),
      entry("fd_fdstat_set_rights", "iII", enter<fd_fdstat_set_rights>),
      entry("fd_filestat_get", "ii", enter<fd_filestat_get>),
      entry("fd_filestat_set_size", "iI", enter<fd_filestat_set_size>),
      entry("fd_filestat_set_times", "iIIi", enter<fd_filestat_set_times>),
      entry("fd_pread", "iiiIi", enter<fd_pread>),
      entry("fd_prestat_get", "ii", enter<fd_prestat_get>),
      entry("fd_prestat_dir_name", "iii", enter<fd_prestat_dir_name>),
      entry("fd_pwrite", "iiiIi", enter<fd_pwrite>),
      entry("fd_read", "iiii", enter<fd_read>),
      entry("fd_readdir", "iiiIi", enter<fd_readdir>),
      entry("fd_renumber", "ii", enter<fd_renumber>),
      entry("fd_seek", "iIii", enter<fd_seek>),
      entry("fd_sync", "i", enter<fd_sync>),
      entry("fd_tell", "ii", enter<fd_tell>),
      entry("fd_write", "iiii", enter<fd_write>),
      entry("path_create_directory", "iii", enter<path_create_directory>),
      entry("path_filestat_get", "iiiii", enter<path_filestat_get>),
      entry("path_filestat_set_times", "iiiiIIi", enter<path_filestat_set_times>),
      entry("path_link", "iiiiiii", enter<path_link>),
      entry("path_open", "iiiiiIIii", enter<path_open>),
      entry("path_readlink", "iiiiii", enter<path_readlink>),
      entry("path_remove_directory", "iii", enter<path_remove_directory>),
      entry("path_rename", "iiiiii", enter<path_rename>),
      entry("path_symlink", "iiiii", enter<path_symlink>),
      entry("path_unlink_file", "iii", enter<path_unlink_file>),
      entry("poll_oneoff", "iiii", enter<poll_oneoff>),
      entry("proc_exit", "i", proc_exit, /*returns=*/false),
      entry("proc_raise", "i", enter<proc_raise>),
      entry("sched_yield", "", enter<sched_yield>),
      entry("random_get", "ii", enter<random_get>),
      entry("sock_accept", "iii", enter<not_supported>),
      entry("sock_recv", "iiiiii", enter<not_supported>),
      entry("sock_send", "iiiii", enter<not_supported>),
      entry("sock_shutdown", "ii", enter<not_supported>),
  };
}

}  // namespace

std::span<const HostImport> wasi_functions() {
  static const std::vector<HostImport>& table = *new std::vector<HostImport>(make_table());
  return table;
}

}  // namespace driftwood::wasm
