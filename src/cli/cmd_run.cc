#include <cstdio>

#include "cli/actor_run.h"
#include "cli/command.h"
#include "cli/printing.h"

namespace driftwood::cli {
namespace {

struct RunFlags {
  HostFlags host;
  StartFlags start;
  GrantFlags grants;
  TurnFlags turns;
  KeepFlags keep;
};

Status run_actor(const RunFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto keeper, SnapshotKeeper::open(flags.keep, flags.start.name));
  DW_ASSIGN_OR_RETURN(const auto host, ActorHost::open(flags.host));
  DW_ASSIGN_OR_RETURN(
      const auto module,
      load_to_start(*host, flags.start, flags.start.require_snapshot || keeper->saves_on_its_own(),
                    flags.grants.quiet));
  DW_ASSIGN_OR_RETURN(actor::ActorOptions options, start_options(flags.start, flags.grants));
  options.checkpoint = keeper->sink();
  options.hold_at = keeper->next_hold(0);
  DW_ASSIGN_OR_RETURN(const actor::ActorId id, host->spawn(flags.start.name, module, std::move(options)));
  DW_RETURN_IF_ERROR(run_and_keep(*host, id, flags.turns, keeper.get()).status());
  if (!flags.grants.quiet) note_kept(*keeper);
  return Status::ok();
}

}  // namespace

void add_run(CLI::App& app, Action* action) {
  CLI::App* cmd = app.add_subcommand("run", "Run an actor: a WebAssembly module, sandboxed");
  cmd->footer(
      "What the actor emits, replies and prints goes to standard output; its log to standard error. A guest "
      "may\n"
      "use nothing of this machine unless granted: folders with --dir, variables with --env.\n"
      "Examples: driftwood run build/release/guests/gemm.wasm\n"
      "          driftwood run chat.wasm --model smollm2-135m --message 'Hello' --message 'And now?'\n"
      "          driftwood run chat.wasm --stdin --name ada --snapshot-every turn\n"
      "          driftwood snapshot restore ada --stdin");
  auto flags = std::make_shared<RunFlags>();
  add_start_flags(cmd, &flags->start);
  add_host_flags(cmd, &flags->host);
  cmd->add_option("--name", flags->start.name, "Name of the actor")->capture_default_str();
  add_turn_flags(cmd, &flags->turns);
  add_grant_flags(cmd, &flags->grants);
  cmd->add_flag("--require-snapshot", flags->start.require_snapshot,
                "Refuse a module that cannot be snapshotted");
  add_keep_flags(cmd, &flags->keep);
  cmd->callback([=] { *action = [=] { return run_actor(*flags); }; });
}

}  // namespace driftwood::cli
