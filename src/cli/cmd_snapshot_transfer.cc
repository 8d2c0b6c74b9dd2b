// Snapshots checked, and as files of their own.
#include <cstdio>
#include <filesystem>

#include "cli/printing.h"
#include "cli/snapshot_commands.h"
#include "cli/snapshot_source.h"

namespace driftwood::cli {
namespace {

struct VerifyFlags : SnapshotFlags {
  std::string which;
};

struct TransferFlags : SnapshotFlags {
  bool force = false;
  std::string which;
  std::string file;
  std::string name;
};

Status verify(const VerifyFlags& flags) {
  auto store = open_store(flags.store, StoreUse::kRead);
  Json out;
  if (!flags.which.empty() && names_a_file(flags.which, store.is_ok() ? store->get() : nullptr)) {
    DW_ASSIGN_OR_RETURN(const auto file, snapshot::Snapshot::open(flags.which));
    DW_RETURN_IF_ERROR(file->verify_contents(hash_threads()));
    out = {{"file", flags.which}, {"hash", file->hash()}, {"bytes", file->file_bytes()}, {"whole", true}};
  } else {
    DW_RETURN_IF_ERROR(store.status());
    DW_RETURN_IF_ERROR((*store)->verify(flags.which));
    if (flags.which.empty()) {
      DW_ASSIGN_OR_RETURN(const auto entries, (*store)->list());
      out = {{"store", (*store)->path()}, {"snapshots", entries.size()}, {"whole", true}};
    } else {
      DW_ASSIGN_OR_RETURN(const std::string hash, (*store)->resolve(flags.which));
      out = {{"hash", hash}, {"whole", true}};
    }
  }
  if (flags.json) {
    print_json(out);
  } else if (flags.which.empty()) {
    std::printf("every byte of %s is whole\n",
                count_text(out["snapshots"].get<uint64_t>(), "snapshot", "snapshots").c_str());
  } else {
    std::printf("%s: every byte is whole\n", short_hash(out["hash"].get<std::string>()).c_str());
  }
  return Status::ok();
}

Status export_snapshot(const TransferFlags& flags) {
  std::error_code ignored;
  const auto type = std::filesystem::symlink_status(flags.file, ignored).type();
  const bool there =
      type != std::filesystem::file_type::not_found && type != std::filesystem::file_type::none;
  if (!flags.force && there) {
    return already_exists(flags.file + " is there; --force replaces it");
  }
  DW_ASSIGN_OR_RETURN(const auto store, open_store(flags.store, StoreUse::kRead));
  DW_ASSIGN_OR_RETURN(const snapshot::WrittenSnapshot written, store->export_file(flags.which, flags.file));
  if (flags.json) {
    print_json({{"hash", written.hash}, {"file", flags.file}, {"bytes", written.file_bytes}});
  } else {
    std::printf("%s\n", written.hash.c_str());
  }
  return Status::ok();
}

Status import_snapshot(const TransferFlags& flags) {
  if (!flags.name.empty()) DW_RETURN_IF_ERROR(check_snapshot_name(flags.name, "--name"));
  DW_ASSIGN_OR_RETURN(const auto store, open_store(flags.store, StoreUse::kMake));
  const auto accept = [&](const snapshot::Snapshot& file) -> Status {
    DW_RETURN_IF_ERROR(accept_actor(flags.file)(file));
    if (flags.name.empty() || flags.force) return Status::ok();
    const Result<std::string> there = store->named(flags.name);
    if (!there.is_ok() || *there == file.hash()) return Status::ok();
    return already_exists("another snapshot is named '" + flags.name + "'; --force moves the name");
  };
  DW_ASSIGN_OR_RETURN(const snapshot::SaveReport report, store->import_file(flags.file, flags.name, accept));
  if (flags.json) {
    print_json({{"hash", report.hash},
                {"name", flags.name},
                {"bytes_total", report.bytes_total},
                {"bytes_written", report.bytes_written}});
  } else {
    std::printf("%s\n", report.hash.c_str());
  }
  return Status::ok();
}

}  // namespace

void add_snapshot_verify(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd =
      parent.add_subcommand("verify", "Check every byte of a snapshot, a file, or the whole store");
  cmd->footer(
      "Examples: driftwood snapshot verify\n          driftwood snapshot verify ./actor.snapshot --json");
  auto flags = std::make_shared<VerifyFlags>();
  flags->store.inherited = store;
  cmd->add_option("which", flags->which,
                  "Snapshot: name, hash, or FILE; everything in the store if not given");
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return verify(*flags); }; });
}

void add_snapshot_export(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("export", "Write a snapshot as one portable file");
  cmd->footer(
      "The file is a safetensors file (docs/formats/snapshot.md); its hash is the snapshot's.\n"
      "Example: driftwood snapshot export half-told ./half-told.snapshot");
  auto flags = std::make_shared<TransferFlags>();
  flags->store.inherited = store;
  cmd->add_option("which", flags->which, "Snapshot: name or hash")->required();
  cmd->add_option("file", flags->file, "FILE to write")->required();
  cmd->add_flag("--force", flags->force, "Replace a file that is there");
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return export_snapshot(*flags); }; });
}

void add_snapshot_import(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("import", "Check a portable file in full and copy it into the store");
  cmd->footer("Example: driftwood snapshot import ./half-told.snapshot --name half-told");
  auto flags = std::make_shared<TransferFlags>();
  flags->store.inherited = store;
  cmd->add_option("file", flags->file, "FILE that `snapshot export` wrote")->required();
  cmd->add_option("--name", flags->name, "Name it is to have; gc removes a snapshot without one");
  cmd->add_flag("--force", flags->force, "Take the name from another snapshot that has it");
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return import_snapshot(*flags); }; });
}

}  // namespace driftwood::cli
