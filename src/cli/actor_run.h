// What `run`, `snapshot save` and `snapshot restore` have in common: the flags with which an actor is
// started, what it is granted, the messages it gets, and the loop of turns, which keeps snapshots on the way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/actor_host.h"
#include "cli/snapshot_keeper.h"

namespace driftwood::cli {

// Of an actor that begins.
struct StartFlags {
  std::string module;
  std::string name = "actor";
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::string config_file;
  bool require_snapshot = false;
  uint64_t seed = 0;
};
void add_start_flags(CLI::App* cmd, StartFlags* flags);

// Of any actor: what it may use here.
struct GrantFlags {
  std::vector<std::string> dirs;
  int64_t memory_mb = 256;
  int64_t deadline_ms = 5000;
  bool quiet = false;
};
void add_grant_flags(CLI::App* cmd, GrantFlags* flags);

struct TurnFlags {
  std::vector<std::string> messages;
  bool stdin_messages = false;
};
void add_turn_flags(CLI::App* cmd, TurnFlags* flags);

// Limits and folders.
Result<actor::ActorOptions> granted_options(const GrantFlags& grants);
// The same, and what the actor begins with.
Result<actor::ActorOptions> start_options(const StartFlags& start, const GrantFlags& grants);

// Loads the module to be started. One that cannot be snapshotted is noted on standard error, or refused where
// that is needed.
Result<std::shared_ptr<wasm::Module>> load_to_start(ActorHost& host, const StartFlags& start,
                                                    bool must_freeze, bool quiet);

struct TurnsEnd {
  actor::ActorStatus status;
  size_t messages_left = 0;  // of --message, not sent because the actor is held
};

// Lets the actor settle, sends the messages one after the other, each when it is idle, and waits until it has
// neither work nor timers, or has ended: a fault is an error. Without `keeper`, the first hold point ends it;
// with one, hold points are where it saves (snapshot_keeper.h).
Result<TurnsEnd> run_turns(ActorHost& host, actor::ActorId id, const TurnFlags& turns,
                           SnapshotKeeper* keeper);

// The whole of a run: turns, what is to be saved at the end, and everything saved that waits. An exit code of
// the guest is an error.
Result<TurnsEnd> run_and_keep(ActorHost& host, actor::ActorId id, const TurnFlags& turns,
                              SnapshotKeeper* keeper);

}  // namespace driftwood::cli
