#include "cli/store_flags.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace driftwood::cli {
void add_store_flag(CLI::App* cmd, StoreFlags* flags) {
  CLI::Option* option =
      cmd->add_option("--store", flags->path,
                      "Folder of snapshots; default ${XDG_DATA_HOME:-~/.local/share}/driftwood/store");
  if (flags->inherited == nullptr) option->envname("DRIFTWOOD_STORE");
}

std::string store_path(const StoreFlags& flags) {
  if (!flags.path.empty()) return flags.path;
  if (flags.inherited != nullptr && !flags.inherited->empty()) return *flags.inherited;
  const auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  // CLI11 takes an empty flag for one that is given.
  if (std::string store = environment("DRIFTWOOD_STORE"); !store.empty()) return store;
  std::string data = environment("XDG_DATA_HOME");
  if (data.empty()) {
    const std::string home = environment("HOME");
    if (home.empty()) return "";
    data = home + "/.local/share";
  }
  return data + "/driftwood/store";
}

int hash_threads() { return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u)); }

Result<std::unique_ptr<snapshot::Store>> open_store(const StoreFlags& flags, StoreUse use) {
  const std::string path = store_path(flags);
  if (path.empty()) {
    return failed_precondition("no store: neither HOME nor XDG_DATA_HOME is set; name a folder with --store");
  }
  snapshot::StoreOptions options;
  options.create = use == StoreUse::kMake;
  options.threads = hash_threads();
  auto store = snapshot::Store::open(path, options);
  if (store.is_ok()) return store;
  if (use == StoreUse::kRead && store.status().code() == Code::kPermissionDenied) {
    options.read_only = true;
    return snapshot::Store::open(path, options);
  }
  if (store.status().code() == Code::kNotFound) {
    return store.status().with_context("no store (--store; the first save or import makes one)");
  }
  return store;
}

Status check_snapshot_name(const std::string& name, const std::string& flag) {
  if (snapshot::Store::is_name(name)) return Status::ok();
  return invalid_argument(flag + ": '" + name + "' can't name a snapshot: " + snapshot::kNameRule);
}

}  // namespace driftwood::cli
