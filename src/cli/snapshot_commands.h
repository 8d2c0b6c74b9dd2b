// The subcommands of `snapshot`, and what they have in common.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/store_flags.h"

namespace driftwood::cli {

// A subcommand with flags of its own, --store and --json.
struct SnapshotFlags {
  StoreFlags store;
  bool json = false;
};
void add_snapshot_flags(CLI::App* cmd, SnapshotFlags* flags);

using InheritedStore = std::shared_ptr<const std::string>;
void add_snapshot_save(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_restore(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_fork(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_list(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_inspect(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_verify(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_diff(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_export(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_import(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_remove(CLI::App& parent, const InheritedStore& store, Action* action);
void add_snapshot_gc(CLI::App& parent, const InheritedStore& store, Action* action);

}  // namespace driftwood::cli
