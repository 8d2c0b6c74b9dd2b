#include <cstdio>

#include "actor/actor_saver.h"
#include "actor/actor_sections.h"
#include "cli/checks.h"
#include "cli/printing.h"
#include "cli/snapshot_commands.h"
#include "cli/snapshot_fit.h"
#include "cli/snapshot_source.h"

namespace driftwood::cli {
namespace {

struct ForkFlags : SnapshotFlags {
  std::string which;
  std::string name;
  uint64_t stream = 0;
};

// A module's bytes and nothing more: enough to be saved again, without a compiler.
class ModuleBytes final : public wasm::Module {
 public:
  ModuleBytes(std::string name, std::string hash_hex, std::vector<uint8_t> code)
      : name_(std::move(name)), code_(std::move(code)) {
    report_.hash_hex = std::move(hash_hex);
  }
  const wasm::ModuleReport& report() const override { return report_; }
  const std::string& name() const override { return name_; }
  std::span<const uint8_t> code() const override { return code_; }

 private:
  std::string name_;
  std::vector<uint8_t> code_;
  wasm::ModuleReport report_;
};

Status fork_snapshot(const ForkFlags& flags) {
  DW_RETURN_IF_ERROR(check_snapshot_name(flags.name, "--name"));
  DW_ASSIGN_OR_RETURN(const auto store, open_store(flags.store, StoreUse::kWrite));
  if (store->named(flags.name).is_ok()) {
    return already_exists("a snapshot is named '" + flags.name +
                          "' already (`driftwood snapshot remove` frees it)");
  }
  DW_ASSIGN_OR_RETURN(const auto stored, store->load(flags.which));
  DW_ASSIGN_OR_RETURN(const auto frozen, actor::read_actor(stored));
  auto code = actor::module_code(*stored);
  if (code.is_ok()) {
    frozen->module =
        std::make_shared<ModuleBytes>(module_name(*stored), frozen->identity.module_hash, std::move(*code));
  } else if (code.status().code() != Code::kNotFound) {
    return code.status();
  }
  // As a fork of the living actor: another actor, which has shown nothing yet.
  frozen->name = flags.name;
  frozen->life.epoch = 0;
  frozen->life.sequence = 0;
  actor::rekey(frozen.get(), flags.stream);
  actor::ActorSaver saver(store.get());
  std::map<std::string, std::string> notes = inherited_notes(stored->origin());
  notes["fork_stream"] = std::to_string(flags.stream);
  DW_ASSIGN_OR_RETURN(const snapshot::SaveReport report, saver.save(*frozen, flags.name, notes));
  if (!flags.json) {
    std::printf("%s\n", report.hash.c_str());
    return Status::ok();
  }
  print_json({{"hash", report.hash},
              {"name", flags.name},
              {"parent", stored->hash()},
              {"stream", flags.stream},
              {"bytes_total", report.bytes_total},
              {"bytes_written", report.bytes_written}});
  return Status::ok();
}

}  // namespace

void add_snapshot_fork(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("fork", "A second actor from a snapshot");
  cmd->footer(
      "Stream 0 goes on as the first would; any other draws differently. The two share what is equal.\n"
      "Example: driftwood snapshot fork half-told --name other-end --stream 1");
  auto flags = std::make_shared<ForkFlags>();
  flags->store.inherited = store;
  cmd->add_option("which", flags->which, "Snapshot: name or hash")->required();
  cmd->add_option("--name", flags->name, "Name of the new snapshot and its actor")->required();
  cmd->add_option("--stream", flags->stream, "Stream of the draws")
      ->check(whole_number())
      ->capture_default_str();
  add_snapshot_flags(cmd, flags.get());
  cmd->callback([=] { *action = [=] { return fork_snapshot(*flags); }; });
}

}  // namespace driftwood::cli
