// What is in the store, names taken away, and what no name needs collected.
#include <cstdio>

#include "cli/printing.h"
#include "cli/snapshot_commands.h"

namespace driftwood::cli {
namespace {

struct NameFlags : SnapshotFlags {
  std::string name;
};

struct GcFlags : SnapshotFlags {
  bool dry_run = false;
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Status list_snapshots(const SnapshotFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto store, open_store(flags.store, StoreUse::kRead));
  DW_ASSIGN_OR_RETURN(const std::vector<snapshot::StoreEntry> entries, store->list());
  if (flags.json) {
    Json out = Json::array();
    for (const snapshot::StoreEntry& e : entries) {
      Json one = {{"hash", e.hash},
                  {"names", e.names},
                  {"parent", e.parent},
                  {"created_ns", e.created_ns},
                  {"bytes_total", e.bytes_total}};
      if (!e.status.is_ok()) one["error"] = e.status.to_string();
      out.push_back(std::move(one));
    }
    print_json(out);
    return Status::ok();
  }
  std::set<std::string> hashes;
  for (const snapshot::StoreEntry& e : entries) hashes.insert({e.hash, e.parent});
  const ShortHashes shortened(std::move(hashes));
  Table table;
  table.row({"HASH", "CREATED (UTC)", "SIZE", "PARENT", "NAMES"});
  for (const snapshot::StoreEntry& e : entries) {
    if (!e.status.is_ok()) {
      table.row(
          {shortened.of(e.hash), "-", "-", "-", joined(e.names) + " " + printable(e.status.to_string())});
      continue;
    }
    table.row({shortened.of(e.hash), time_text(e.created_ns), size_text(e.bytes_total),
               e.parent.empty() ? "-" : shortened.of(e.parent), e.names.empty() ? "-" : joined(e.names)});
  }
  if (entries.empty()) std::printf("no snapshots yet\n");
  if (!entries.empty()) table.print();
  return Status::ok();
}

Status remove_name(const NameFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto store, open_store(flags.store, StoreUse::kWrite));
  DW_RETURN_IF_ERROR(check_snapshot_name(flags.name, "NAME"));
  const Result<std::string> hash = store->named(flags.name);  // a damaged name can be taken away, too
  if (hash.status().code() == Code::kNotFound) {
    return not_found(store->path() + ": no snapshot is named '" + flags.name + "'");
  }
  DW_RETURN_IF_ERROR(store->remove_name(flags.name));
  if (flags.json) print_json({{"name", flags.name}, {"hash", hash.is_ok() ? *hash : ""}});
  return Status::ok();
}

Status collect(const GcFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto store, open_store(flags.store, StoreUse::kWrite));
  snapshot::GcOptions options;
  options.dry_run = flags.dry_run;
  DW_ASSIGN_OR_RETURN(const snapshot::GcReport report, store->gc(options));
  if (flags.json) {
    print_json({{"dry_run", flags.dry_run},
                {"snapshots_removed", report.snapshots_removed},
                {"packs_removed", report.packs_removed},
                {"packs_rewritten", report.packs_rewritten},
                {"bytes_freed", report.bytes_freed},
                {"kept_for", report.kept_for}});
    return Status::ok();
  }
  std::printf("%s %s and %s%s: %s\n", flags.dry_run ? "would remove" : "removed",
              count_text(report.snapshots_removed, "snapshot", "snapshots").c_str(),
              count_text(report.packs_removed, "pack", "packs").c_str(),
              report.packs_rewritten == 0 ? ""
                                          : (std::string(flags.dry_run ? ", rewrite " : ", rewrote ") +
                                             count_text(report.packs_rewritten, "pack", "packs"))
                                                .c_str(),
              size_text(report.bytes_freed).c_str());
  for (const std::string& damaged : report.kept_for) {
    std::printf("kept for a damaged snapshot: %s\n", printable(damaged).c_str());
  }
  return Status::ok();
}

}  // namespace

void add_snapshot_list(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("list", "List the snapshots of the store, oldest first");
  cmd->footer("Example: driftwood snapshot list --json");
  auto flags = std::make_shared<SnapshotFlags>();
  flags->store.inherited = store;
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return list_snapshots(*flags); }; });
}

void add_snapshot_remove(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("remove", "Take a name away; gc then frees what no name needs");
  cmd->footer("Example: driftwood snapshot remove half-told && driftwood snapshot gc");
  auto flags = std::make_shared<NameFlags>();
  flags->store.inherited = store;
  cmd->add_option("name", flags->name, "Name of a snapshot")->required();
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return remove_name(*flags); }; });
}

void add_snapshot_gc(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd =
      parent.add_subcommand("gc", "Remove snapshots without a name, and what nothing needs any more");
  cmd->footer("Example: driftwood snapshot gc --dry-run");
  auto flags = std::make_shared<GcFlags>();
  flags->store.inherited = store;
  cmd->add_flag("--dry-run", flags->dry_run, "Remove nothing, say what would go");
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return collect(*flags); }; });
}

}  // namespace driftwood::cli
