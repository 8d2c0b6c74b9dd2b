#include "cli/actor_run.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/checks.h"

namespace driftwood::cli {
namespace {

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

Status read_config(const std::string& path, std::vector<uint8_t>* config) {
  if (std::filesystem::is_directory(path))
    return invalid_argument("--actor-config: " + path + " is a folder");
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found("--actor-config: cannot read " + path);
  config->assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  return Status::ok();
}

// One actor and its hold points.
class Turns {
 public:
  Turns(ActorHost& host, actor::ActorId id, SnapshotKeeper* keeper) : host_(host), id_(id), keeper_(keeper) {}

  const actor::ActorStatus& status() const { return status_; }
  // Held for good, or ended.
  bool over() const { return status_.ended() || status_.held; }

  // Until it is idle or has ended; saves where it is held on the way.
  Status settle() {
    for (;;) {
      DW_RETURN_IF_ERROR(host_.wait_turn(id_));
      DW_ASSIGN_OR_RETURN(status_, host_.system().status(id_));
      if (status_.ended() || !status_.held || keeper_ == nullptr) return status_.status;
      DW_RETURN_IF_ERROR(keeper_->save_where_held(host_.system(), id_, status_));
    }
  }

  Status turn(std::string_view message) {
    DW_RETURN_IF_ERROR(
        host_.system().send(id_, {reinterpret_cast<const uint8_t*>(message.data()), message.size()}));
    DW_RETURN_IF_ERROR(settle());
    if (keeper_ != nullptr && !status_.ended()) keeper_->turn_ended(host_.system(), id_);
    return Status::ok();
  }

  // Until there is no timer left either.
  Status finish() {
    constexpr std::chrono::milliseconds kLook{20};
    for (;;) {
      DW_RETURN_IF_ERROR(settle());
      if (over() || (status_.state == actor::ActorState::kIdle && status_.timers == 0)) return status_.status;
      const Status ended = host_.system().wait_exit(id_, kLook);
      if (ended.code() != Code::kDeadlineExceeded && !ended.is_ok()) return ended;
    }
  }

 private:
  ActorHost& host_;
  const actor::ActorId id_;
  SnapshotKeeper* const keeper_;
  actor::ActorStatus status_;
};

}  // namespace

void add_start_flags(CLI::App* cmd, StartFlags* flags) {
  cmd->add_option("module", flags->module, "ACTOR.wasm (or .wat)")->required();
  cmd->add_option("args", flags->args, "Arguments the guest sees");
  cmd->add_option("--actor-config", flags->config_file, "File whose bytes the guest reads with config_read");
  cmd->add_option("--env", flags->env, "Grant an environment variable NAME=VALUE")->allow_extra_args(false);
  cmd->add_option("--seed", flags->seed, "Seed of the guest's random numbers")
      ->check(whole_number())
      ->capture_default_str();
}

void add_grant_flags(CLI::App* cmd, GrantFlags* flags) {
  cmd->add_option("--dir", flags->dirs, "Grant a folder GUEST=HOST, read-only unless :rw is added")
      ->allow_extra_args(false);
  cmd->add_option("--memory-mb", flags->memory_mb, "Most linear memory, MiB")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  cmd->add_option("--deadline-ms", flags->deadline_ms, "Most guest time of one handler; 0: none")
      ->check(CLI::Range(0, 86400000))
      ->capture_default_str();
  cmd->add_flag("--quiet", flags->quiet, "No notes on standard error");
}

void add_turn_flags(CLI::App* cmd, TurnFlags* flags) {
  cmd->add_option("--message", flags->messages, "Send this message; repeat for a conversation")
      ->allow_extra_args(false);
  cmd->add_flag("--stdin", flags->stdin_messages, "Send each line of standard input as a message");
}

Result<actor::ActorOptions> granted_options(const GrantFlags& grants) {
  actor::ActorOptions options;
  options.limits.max_memory_bytes = static_cast<uint64_t>(grants.memory_mb) << 20;
  options.limits.handler_deadline = std::chrono::milliseconds(grants.deadline_ms);
  for (const std::string& dir : grants.dirs) {
    DW_ASSIGN_OR_RETURN(auto folder, parse_folder(dir));
    options.wasi.folders.push_back(std::move(folder));
  }
  return options;
}

Result<actor::ActorOptions> start_options(const StartFlags& start, const GrantFlags& grants) {
  DW_ASSIGN_OR_RETURN(actor::ActorOptions options, granted_options(grants));
  options.seed = start.seed;
  options.wasi.args.push_back(start.name);
  options.wasi.args.insert(options.wasi.args.end(), start.args.begin(), start.args.end());
  for (const std::string& pair : start.env) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid_argument("--env needs NAME=VALUE, got '" + pair + "'");
    }
    options.wasi.env.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  if (!start.config_file.empty()) DW_RETURN_IF_ERROR(read_config(start.config_file, &options.config));
  return options;
}

Result<std::shared_ptr<wasm::Module>> load_to_start(ActorHost& host, const StartFlags& start,
                                                    bool must_freeze, bool quiet) {
  DW_ASSIGN_OR_RETURN(auto module, host.load_file(start.module));
  const std::vector<std::string> blockers = actor::freeze_blockers(module->report());
  if (blockers.empty()) return module;
  std::string reasons;
  for (const std::string& reason : blockers) {
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (must_freeze) return failed_precondition(start.module + " cannot be snapshotted: " + reasons);
  if (!quiet) {
    std::fprintf(stderr, "note: %s cannot be snapshotted: %s\n", start.module.c_str(), reasons.c_str());
  }
  return module;
}

Result<TurnsEnd> run_turns(ActorHost& host, actor::ActorId id, const TurnFlags& flags,
                           SnapshotKeeper* keeper) {
  Turns turns(host, id, keeper);
  DW_RETURN_IF_ERROR(turns.settle());
  size_t sent = 0;
  // A message to an actor that has ended is an error; one that is held would only keep it waiting.
  for (; sent < flags.messages.size() && !turns.status().held; ++sent) {
    DW_RETURN_IF_ERROR(turns.turn(flags.messages[sent]));
  }
  std::string line;
  while (flags.stdin_messages && !turns.status().held && std::getline(std::cin, line)) {
    DW_RETURN_IF_ERROR(turns.turn(line));
  }
  DW_RETURN_IF_ERROR(turns.finish());
  return TurnsEnd{turns.status(), flags.messages.size() - sent};
}

Result<TurnsEnd> run_and_keep(ActorHost& host, actor::ActorId id, const TurnFlags& turns,
                              SnapshotKeeper* keeper) {
  const Result<TurnsEnd> end = run_turns(host, id, turns, keeper);
  std::fflush(stdout);
  if (end.is_ok()) keeper->run_ended(host.system(), id, end->status);
  const Status kept = keeper->finish();
  DW_RETURN_IF_ERROR(end.status());
  if (end->status.exit_code != 0) {
    return aborted("actor " + end->status.name + " exited with code " +
                   std::to_string(end->status.exit_code));
  }
  DW_RETURN_IF_ERROR(kept);
  return end;
}

}  // namespace driftwood::cli
