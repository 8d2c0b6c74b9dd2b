#include <algorithm>
#include <cstdio>

#include "actor/actor_sections.h"
#include "cli/actor_run.h"
#include "cli/checks.h"
#include "cli/collected_output.h"
#include "cli/printing.h"
#include "cli/snapshot_commands.h"
#include "cli/snapshot_fit.h"
#include "cli/snapshot_source.h"

namespace driftwood::cli {
namespace {

struct RestoreFlags {
  HostFlags host;
  GrantFlags grants;
  TurnFlags turns;
  KeepFlags keep;
  std::string which;
  std::string name;
  std::string module;
  std::string verify;
  uint64_t stream = 0;
  bool allow_numerics_change = false;
  bool json = false;
};

struct Loaded {
  std::unique_ptr<snapshot::Store> store;
  std::shared_ptr<const snapshot::StoredSnapshot> stored;
};

// A file is checked in full and copied into the store first: only immutable files are mapped.
Result<Loaded> load(const RestoreFlags& flags) {
  auto reading = open_store(flags.keep.store, flags.keep.every.empty() ? StoreUse::kRead : StoreUse::kMake);
  const snapshot::Verify verify =
      flags.verify == "full" ? snapshot::Verify::kFull : snapshot::Verify::kIfTouched;
  Loaded loaded;
  std::string which = flags.which;
  if (names_a_file(which, reading.is_ok() ? reading->get() : nullptr)) {
    DW_ASSIGN_OR_RETURN(loaded.store, open_store(flags.keep.store, StoreUse::kMake));
    DW_ASSIGN_OR_RETURN(const snapshot::SaveReport imported,
                        loaded.store->import_file(which, "", accept_actor(which)));
    which = imported.hash;
  } else {
    DW_RETURN_IF_ERROR(reading.status());
    loaded.store = std::move(*reading);
  }
  DW_ASSIGN_OR_RETURN(loaded.stored, loaded.store->load(which, verify));
  return loaded;
}

Result<std::shared_ptr<wasm::Module>> load_module(ActorHost& host, const RestoreFlags& flags,
                                                  const snapshot::StoredSnapshot& stored) {
  if (!flags.module.empty()) return host.load_file(flags.module);
  const auto code = actor::module_code(stored);
  if (code.status().code() == Code::kNotFound) {
    return failed_precondition(flags.which + ": does not hold its module: give it with --module FILE");
  }
  DW_RETURN_IF_ERROR(code.status());
  return host.load_bytes(module_name(stored), *code);
}

Status check_memory(const RestoreFlags& flags, const actor::FrozenActor& frozen) {
  const uint64_t has = frozen.memory.image.memory_bytes;
  if (has <= static_cast<uint64_t>(flags.grants.memory_mb) << 20) return Status::ok();
  return resource_exhausted(flags.which + ": its memory has " + size_text(has) + ", allowed here are " +
                            std::to_string(flags.grants.memory_mb) + " MiB (--memory-mb)");
}

void print_report(const snapshot::StoredSnapshot& stored, const TurnsEnd& end, int64_t computed,
                  const std::string& output, const SnapshotKeeper& keeper) {
  Json saved = Json::array();
  for (const KeptSnapshot& kept : keeper.kept()) {
    saved.push_back(
        {{"hash", kept.report.hash}, {"name", kept.name}, {"bytes_written", kept.report.bytes_written}});
  }
  print_json({{"snapshot", stored.hash()},
              {"actor", end.status.name},
              {"state", std::string(actor::actor_state_name(end.status.state))},
              {"tokens_generated", end.status.tokens_generated},
              {"tokens_computed", computed},
              {"handlers_run", end.status.handlers_run},
              {"output", output},
              {"saved", saved}});
}

Status restore_actor(RestoreFlags flags) {
  DW_ASSIGN_OR_RETURN(Loaded loaded, load(flags));
  const std::shared_ptr<const snapshot::StoredSnapshot> stored = loaded.stored;
  DW_ASSIGN_OR_RETURN(const auto frozen, actor::read_actor(stored));
  DW_RETURN_IF_ERROR(check_memory(flags, *frozen));
  const std::string name = flags.name.empty() ? frozen->name : flags.name;
  // Without a model it goes on without one, unless one is asked for.
  if (frozen->identity.model.model_fingerprint.empty() && flags.host.engine.model == EngineFlags().model) {
    flags.host.engine.model = "none";
  }
  DW_ASSIGN_OR_RETURN(const auto keeper, SnapshotKeeper::create(std::move(loaded.store), flags.keep, name));
  CollectedOutput output;
  DW_ASSIGN_OR_RETURN(const auto host, ActorHost::open(flags.host));
  DW_ASSIGN_OR_RETURN(const auto module, load_module(*host, flags, *stored));
  engine::Engine* const engine = host->opened().engine.get();
  std::map<std::string, std::string> notes = inherited_notes(stored->origin());
  DW_RETURN_IF_ERROR(
      fit_actor(flags.which, *module, engine, flags.allow_numerics_change, frozen.get(), &notes));
  if (flags.stream != 0) {
    actor::rekey(frozen.get(), flags.stream);
    notes["fork_stream"] = std::to_string(flags.stream);
  }
  keeper->set_notes(std::move(notes));
  DW_ASSIGN_OR_RETURN(actor::ActorOptions options, granted_options(flags.grants));
  options.checkpoint = keeper->sink();
  options.hold_at = keeper->next_hold(frozen->life.tokens_generated);
  if (flags.json) options.output = output.sink();
  const Result<actor::ActorId> id = host->thaw(name, *frozen, module, std::move(options));
  DW_RETURN_IF_ERROR(id.is_ok() ? Status::ok() : id.status().with_context(flags.which));
  DW_ASSIGN_OR_RETURN(const TurnsEnd end, run_and_keep(*host, *id, flags.turns, keeper.get()));
  if (flags.json) {
    print_report(*stored, end, engine == nullptr ? 0 : engine->stats().rows_computed, output.text(), *keeper);
  } else if (!flags.grants.quiet) {
    note_kept(*keeper);
  }
  return Status::ok();
}

}  // namespace

void add_snapshot_restore(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("restore", "Go on from a snapshot");
  cmd->footer(
      "The actor goes on where it was saved, bit for bit; then it gets the messages. Its output goes to "
      "standard\n"
      "output. Folders that it had must be granted again. A FILE is checked and copied into the store "
      "first.\n"
      "Examples: driftwood snapshot restore half-told\n"
      "          driftwood snapshot restore ./actor.snapshot --message 'Where were we?' --snapshot-every "
      "turn");
  auto flags = std::make_shared<RestoreFlags>();
  flags->keep.store.inherited = store;
  cmd->add_option("which", flags->which, "Snapshot: name, hash, or FILE")->required();
  add_host_flags(cmd, &flags->host);
  cmd->add_option("--name", flags->name, "Name of the actor; its own if not given");
  add_turn_flags(cmd, &flags->turns);
  add_grant_flags(cmd, &flags->grants);
  cmd->add_option("--module", flags->module, "The module's FILE; that in the snapshot if not given");
  cmd->add_option("--verify", flags->verify, "full: check every byte before it is used")
      ->check(CLI::IsMember({"full"}));
  cmd->add_flag("--allow-numerics-change", flags->allow_numerics_change,
                "Go on under another numerics id; noted in later snapshots");
  cmd->add_option("--stream", flags->stream,
                  "Go on as the fork of that stream: 0 as it was, others draw differently")
      ->check(whole_number())
      ->capture_default_str();
  add_keep_flags(cmd, &flags->keep);
  cmd->add_flag("--json", flags->json, "Print JSON, the output in it");
  cmd->callback([=] { *action = [=] { return restore_actor(*flags); }; });
}

}  // namespace driftwood::cli
