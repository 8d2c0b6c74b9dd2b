#include "cli/store_flags.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "snapshot/digest.h"

namespace driftwood::cli {
namespace {

constexpr size_t kMaxName = 200;

bool name_has(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-';
}

bool is_hash(const std::string& name) {
  snapshot::Digest digest;
  return snapshot::from_hex(name, &digest);
}

}  // namespace

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
  std::string data = environment("XDG_DATA_HOME");
  if (data.empty()) {
    const std::string home = environment("HOME");
    data = (home.empty() ? std::string("/tmp") : home) + "/.local/share";
  }
  return data + "/driftwood/store";
}

int hash_threads() { return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u)); }

Result<std::unique_ptr<snapshot::Store>> open_store(const StoreFlags& flags, StoreUse use) {
  const std::string path = store_path(flags);
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
  const bool fits = !name.empty() && name.size() <= kMaxName && name[0] != '.' &&
                    std::all_of(name.begin(), name.end(), name_has) && !is_hash(name);
  if (fits) return Status::ok();
  return invalid_argument(
      flag + ": '" + name +
      "' is no name for a snapshot: 1 to 200 of a-z A-Z 0-9 _ . - that do not begin with a dot");
}

std::string snapshot_name_of(const std::string& actor_name) {
  std::string name = actor_name.substr(0, kMaxName);
  std::replace_if(name.begin(), name.end(), [](char c) { return !name_has(c); }, '-');
  if (name.empty() || name[0] == '.' || is_hash(name)) name = "actor" + name.substr(0, kMaxName - 5);
  return name;
}

}  // namespace driftwood::cli
