#include "cli/snapshot_commands.h"

namespace driftwood::cli {

void add_snapshot_flags(CLI::App* cmd, SnapshotFlags* flags) {
  add_store_flag(cmd, &flags->store);
  cmd->add_flag("--json", flags->json, "Print JSON");
}

void add_snapshot(CLI::App& app, Action* action) {
  CLI::App* cmd = app.add_subcommand("snapshot", "Keep actors whole, and go on from what was kept");
  cmd->footer(
      "WHICH is a snapshot's name, its hash, or the first 8 or more digits of that. What holds a '/', and "
      "what the\n"
      "store does not know, is a file.\n"
      "Examples: driftwood snapshot save chat.wasm --message 'Hello' --name greeted\n"
      "          driftwood snapshot restore greeted --message 'And now?'\n"
      "          driftwood snapshot list");
  cmd->require_subcommand(1);
  auto store = std::make_shared<std::string>();
  cmd->add_option("--store", *store, "Folder of snapshots, for every subcommand")->envname("DRIFTWOOD_STORE");
  add_snapshot_save(*cmd, store, action);
  add_snapshot_restore(*cmd, store, action);
  add_snapshot_fork(*cmd, store, action);
  add_snapshot_list(*cmd, store, action);
  add_snapshot_inspect(*cmd, store, action);
  add_snapshot_verify(*cmd, store, action);
  add_snapshot_diff(*cmd, store, action);
  add_snapshot_export(*cmd, store, action);
  add_snapshot_import(*cmd, store, action);
  add_snapshot_remove(*cmd, store, action);
  add_snapshot_gc(*cmd, store, action);
}

}  // namespace driftwood::cli
