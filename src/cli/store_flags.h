// Where snapshots are kept, as flags say: --store > DRIFTWOOD_STORE > config file >
// ${XDG_DATA_HOME:-~/.local/share}/driftwood/store.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "snapshot/store.h"

namespace driftwood::cli {

struct StoreFlags {
  std::string path;                              // empty: `inherited`, else the default
  std::shared_ptr<const std::string> inherited;  // --store before the subcommand of `snapshot`, or null
};

// `run` takes the environment itself; the subcommands of `snapshot` inherit it.
void add_store_flag(CLI::App* cmd, StoreFlags* flags);
std::string store_path(const StoreFlags& flags);  // empty: there is no home folder

enum class StoreUse : uint8_t {
  kRead,   // a store that may be on a read-only disk
  kWrite,  // must be there
  kMake,   // made if it is missing
};
Result<std::unique_ptr<snapshot::Store>> open_store(const StoreFlags& flags, StoreUse use);

// Threads for hashing.
int hash_threads();

// What a snapshot may be called (snapshot/store.h); `flag` begins the message.
Status check_snapshot_name(const std::string& name, const std::string& flag);

}  // namespace driftwood::cli
