#include <cstdio>

#include "cli/actor_run.h"
#include "cli/checks.h"
#include "cli/collected_output.h"
#include "cli/printing.h"
#include "cli/snapshot_commands.h"

namespace driftwood::cli {
namespace {

struct SaveFlags {
  HostFlags host;
  StartFlags start;
  GrantFlags grants;
  TurnFlags turns;
  KeepFlags keep;
  actor::HoldPoint hold;
  bool json = false;
};

void print_saved(const SaveFlags& flags, const KeptSnapshot& kept, const TurnsEnd& end,
                 const std::string& output) {
  const snapshot::SaveReport& report = kept.report;
  if (!flags.json) {
    std::printf("%s\n", report.hash.c_str());
    return;
  }
  print_json({{"hash", report.hash},
              {"name", kept.name},
              {"actor", end.status.name},
              {"held", end.status.held},
              {"tokens_generated", end.status.tokens_generated},
              {"handlers_run", end.status.handlers_run},
              {"messages_left", end.messages_left},
              {"output", output},
              {"bytes_total", report.bytes_total},
              {"bytes_written", report.bytes_written},
              {"pieces_total", report.pieces_total},
              {"pieces_written", report.pieces_written},
              {"pieces_zero", report.pieces_zero}});
}

// What the person asked for and did not get.
void note_end(const SaveFlags& flags, const TurnsEnd& end) {
  const bool asked = flags.hold.tokens_generated != actor::HoldPoint().tokens_generated ||
                     flags.hold.handlers_run != actor::HoldPoint().handlers_run;
  if (asked && !end.status.held) {
    std::fprintf(stderr, "note: the actor was idle before that: saved after %s and %s\n",
                 count_text(static_cast<uint64_t>(end.status.tokens_generated), "token", "tokens").c_str(),
                 count_text(end.status.handlers_run, "handler", "handlers").c_str());
  }
  if (end.messages_left > 0) {
    std::fprintf(stderr, "note: %s sent: give them to `snapshot restore`\n",
                 count_text(end.messages_left, "message was not", "messages were not").c_str());
  }
}

Status save_actor(SaveFlags flags) {
  if (flags.start.name.empty()) flags.start.name = flags.keep.name.empty() ? "actor" : flags.keep.name;
  if (flags.keep.name.empty()) {
    DW_RETURN_IF_ERROR(check_snapshot_name(flags.start.name, "--actor-name, for want of --name"));
  }
  DW_ASSIGN_OR_RETURN(auto store, open_store(flags.keep.store, StoreUse::kMake));
  DW_ASSIGN_OR_RETURN(const auto keeper,
                      SnapshotKeeper::create(std::move(store), flags.keep, flags.start.name));
  CollectedOutput output;
  DW_ASSIGN_OR_RETURN(const auto host, ActorHost::open(flags.host));
  DW_ASSIGN_OR_RETURN(const auto module, load_to_start(*host, flags.start, true, flags.grants.quiet));
  DW_ASSIGN_OR_RETURN(actor::ActorOptions options, start_options(flags.start, flags.grants));
  options.checkpoint = keeper->sink();
  options.hold_at = flags.hold;
  options.output = flags.json ? output.sink() : [](const actor::Output& piece) {
    std::fwrite(piece.bytes.data(), 1, piece.bytes.size(), stderr);
  };
  DW_ASSIGN_OR_RETURN(const actor::ActorId id, host->spawn(flags.start.name, module, std::move(options)));
  DW_ASSIGN_OR_RETURN(const TurnsEnd end, run_turns(*host, id, flags.turns, nullptr));
  if (end.status.ended()) {
    return failed_precondition("actor '" + end.status.name +
                               "' has ended by itself: there is nothing to save");
  }
  keeper->save_now(host->system(), id);
  DW_RETURN_IF_ERROR(keeper->finish());
  if (!flags.json && !flags.grants.quiet) note_end(flags, end);
  print_saved(flags, keeper->kept().back(), end, output.text());
  return Status::ok();
}

}  // namespace

void add_snapshot_save(CLI::App& parent, const InheritedStore& store, Action* action) {
  CLI::App* cmd = parent.add_subcommand("save", "Run an actor up to a point and save it there");
  cmd->footer(
      "Runs as `driftwood run` does until the actor is idle, or up to --tokens or --handlers, saves it and "
      "prints\n"
      "the snapshot's hash. What the actor emits goes to standard error.\n"
      "Example: driftwood snapshot save chat.wasm --message 'Tell me a story' --tokens 20 --name half-told");
  auto flags = std::make_shared<SaveFlags>();
  flags->keep.store.inherited = store;
  add_start_flags(cmd, &flags->start);
  add_host_flags(cmd, &flags->host);
  flags->start.name.clear();
  cmd->add_option("--actor-name", flags->start.name, "Name of the actor; the snapshot's if not given");
  add_turn_flags(cmd, &flags->turns);
  add_grant_flags(cmd, &flags->grants);
  add_store_flag(cmd, &flags->keep.store);
  cmd->add_option("--name", flags->keep.name, "Name of the snapshot; the actor's, or 'actor', if not given");
  cmd->add_option("--tokens", flags->hold.tokens_generated, "Stop after that many generated tokens")
      ->check(whole_number(0, kMostInt64));
  cmd->add_option("--handlers", flags->hold.handlers_run, "Stop after that many handlers")
      ->check(whole_number());
  cmd->add_flag("--json", flags->json, "Print JSON");
  cmd->callback([=] { *action = [=] { return save_actor(*flags); }; });
}

}  // namespace driftwood::cli
