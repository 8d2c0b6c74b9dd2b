#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/actor_host.h"
#include "cli/command.h"
#include "cli/model_locator.h"

namespace driftwood::cli {
namespace {

struct RunFlags {
  HostFlags host;
  std::string module;
  std::string name = "actor";
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::vector<std::string> dirs;
  std::vector<std::string> messages;
  std::string config_file;
  bool stdin_messages = false;
  bool require_snapshot = false;
  uint64_t seed = 0;
  int64_t memory_mb = 256;
  int64_t deadline_ms = 5000;
  bool quiet = false;
};

// GUEST=HOST or HOST, with ":rw" behind it for a writable grant.
Result<wasm::WasiOptions::Folder> parse_folder(std::string text) {
  wasm::WasiOptions::Folder folder;
  if (text.ends_with(":rw")) {
    folder.writable = true;
    text.resize(text.size() - 3);
  }
  const size_t equals = text.find('=');
  folder.guest_path = text.substr(0, equals);
  folder.host_path = equals == std::string::npos ? text : text.substr(equals + 1);
  if (folder.guest_path.empty() || folder.host_path.empty()) {
    return invalid_argument("--dir needs GUEST=HOST[:rw], got '" + text + "'");
  }
  return folder;
}

Result<actor::ActorOptions> actor_options(const RunFlags& flags) {
  actor::ActorOptions options;
  options.seed = flags.seed;
  options.limits.max_memory_bytes = static_cast<uint64_t>(flags.memory_mb) << 20;
  options.limits.handler_deadline = std::chrono::milliseconds(flags.deadline_ms);
  options.wasi.args.push_back(flags.name);
  options.wasi.args.insert(options.wasi.args.end(), flags.args.begin(), flags.args.end());
  for (const std::string& pair : flags.env) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return invalid_argument("--env needs NAME=VALUE, got '" + pair + "'");
    options.wasi.env.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  for (const std::string& dir : flags.dirs) {
    DW_ASSIGN_OR_RETURN(auto folder, parse_folder(dir));
    options.wasi.folders.push_back(std::move(folder));
  }
  if (!flags.config_file.empty()) {
    if (std::filesystem::is_directory(flags.config_file)) {
      return invalid_argument("--actor-config: " + flags.config_file + " is a folder");
    }
    std::ifstream in(flags.config_file, std::ios::binary);
    if (!in) return not_found("--actor-config: cannot read " + flags.config_file);
    options.config.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return options;
}

Status run_messages(ActorHost& host, actor::ActorId id, const RunFlags& flags) {
  DW_RETURN_IF_ERROR(host.wait_turn(id));
  for (const std::string& message : flags.messages) DW_RETURN_IF_ERROR(host.turn(id, message));
  std::string line;
  while (flags.stdin_messages && std::getline(std::cin, line)) DW_RETURN_IF_ERROR(host.turn(id, line));
  return host.wait_timers(id);
}

Status run_actor(const RunFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto host, ActorHost::open(flags.host));
  DW_ASSIGN_OR_RETURN(const auto module, host->load_file(flags.module));
  if (!module->report().snapshot_blockers.empty()) {
    std::string reasons;
    for (const std::string& r : module->report().snapshot_blockers)
      reasons += (reasons.empty() ? "" : "; ") + r;
    if (flags.require_snapshot)
      return failed_precondition(flags.module + " cannot be snapshotted: " + reasons);
    if (!flags.quiet)
      std::fprintf(stderr, "note: %s cannot be snapshotted: %s\n", flags.module.c_str(), reasons.c_str());
  }
  DW_ASSIGN_OR_RETURN(actor::ActorOptions options, actor_options(flags));
  DW_ASSIGN_OR_RETURN(const actor::ActorId id, host->spawn(flags.name, module, std::move(options)));
  const Status status = run_messages(*host, id, flags);
  std::fflush(stdout);
  DW_RETURN_IF_ERROR(status);
  DW_ASSIGN_OR_RETURN(const actor::ActorStatus end, host->system().status(id));
  if (end.exit_code != 0) {
    return aborted("actor " + flags.name + " exited with code " + std::to_string(end.exit_code));
  }
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
      "          driftwood run chat.wasm --model smollm2-135m --message 'Hello' --message 'And now?'");
  auto flags = std::make_shared<RunFlags>();
  cmd->add_option("module", flags->module, "ACTOR.wasm (or .wat)")->required();
  cmd->add_option("args", flags->args, "Arguments the guest sees");
  add_host_flags(cmd, &flags->host);
  cmd->add_option("--name", flags->name, "Name of the actor")->capture_default_str();
  cmd->add_option("--message", flags->messages, "Send this message; repeat for a conversation")
      ->allow_extra_args(false);
  cmd->add_flag("--stdin", flags->stdin_messages, "Send each line of standard input as a message");
  cmd->add_option("--actor-config", flags->config_file, "File whose bytes the guest reads with config_read");
  cmd->add_option("--env", flags->env, "Grant an environment variable NAME=VALUE")->allow_extra_args(false);
  cmd->add_option("--dir", flags->dirs, "Grant a folder GUEST=HOST, read-only unless :rw is added")
      ->allow_extra_args(false);
  cmd->add_option("--seed", flags->seed, "Seed of the guest's random numbers")->capture_default_str();
  cmd->add_option("--memory-mb", flags->memory_mb, "Most linear memory, MiB")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  cmd->add_option("--deadline-ms", flags->deadline_ms, "Most guest time of one handler; 0: none")
      ->check(CLI::Range(0, 86400000))
      ->capture_default_str();
  cmd->add_flag("--require-snapshot", flags->require_snapshot, "Refuse a module that cannot be snapshotted");
  cmd->add_flag("--quiet", flags->quiet, "No notes on standard error");
  cmd->callback([=] { *action = [=] { return run_actor(*flags); }; });
}

}  // namespace driftwood::cli
