// SnapshotKeeper: saves a running actor's snapshots: when --snapshot-every says so, and whenever the guest
// asks (checkpoint()).
//
// The actor is held only while it is frozen; hashing and writing are done on a thread of the keeper's own.
// One snapshot may wait for it. A periodic one that comes while another waits takes that one's place, so that
// a slow disk costs snapshots and not time; those of a turn, of the end and of the guest wait for their turn.
//
// Saves that fail are told on standard error at once, the actor goes on, and finish() returns the first
// failure.
//
// Threads: the sink may be called from any; everything else from one. Ownership: owns its store; outlives the
// actor system that its sink is given to.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "actor/actor.h"
#include "actor/actor_saver.h"
#include "actor/frozen_actor.h"
#include "cli/store_flags.h"

namespace driftwood::cli {

struct KeepFlags {
  StoreFlags store;
  std::string every;  // N tokens, "turn", "on-exit", or empty
  std::string name;   // of that actor's snapshots; empty: the actor's
  bool wanted() const { return !every.empty() || !store.path.empty(); }
};
void add_keep_flags(CLI::App* cmd, KeepFlags* flags);

struct KeptSnapshot {
  std::string name;
  snapshot::SaveReport report;
};

class SnapshotKeeper {
 public:
  // Opens the store if there is anything to keep: if not, sink() is null and nothing is ever saved.
  // `actor`: the name of the one that is run; others (its forks) save under their own names.
  static Result<std::unique_ptr<SnapshotKeeper>> open(const KeepFlags& flags, const std::string& actor);
  // For a store that is open already.
  static Result<std::unique_ptr<SnapshotKeeper>> create(std::unique_ptr<snapshot::Store> store,
                                                        const KeepFlags& flags, const std::string& actor);
  ~SnapshotKeeper();

  bool saves_on_its_own() const { return schedule_ != Schedule::kNever; }
  actor::CheckpointSink sink();
  // What goes into every snapshot's origin. Before anything is saved.
  void set_notes(std::map<std::string, std::string> notes) { notes_ = std::move(notes); }
  // Where an actor that has generated that many tokens is to be held for the next periodic snapshot.
  actor::HoldPoint next_hold(int64_t tokens_generated) const;

  // The actor is idle at a hold point: saves it and lets it go on to the next one.
  Status save_where_held(actor::ActorSystem& system, actor::ActorId id, const actor::ActorStatus& status);
  void turn_ended(actor::ActorSystem& system, actor::ActorId id);
  void run_ended(actor::ActorSystem& system, actor::ActorId id, const actor::ActorStatus& status);
  // Now, whatever the schedule; finish() alone tells whether it failed.
  void save_now(actor::ActorSystem& system, actor::ActorId id);

  // Waits until everything is saved; later requests are refused. The first failure.
  Status finish();
  // After finish().
  const std::vector<KeptSnapshot>& kept() const { return kept_; }
  uint64_t replaced() const { return replaced_; }

 private:
  enum class Schedule : uint8_t { kNever, kTokens, kTurn, kOnExit };
  enum class IfFull : uint8_t { kReplace, kWait };
  struct Job {
    std::string name;
    std::shared_ptr<actor::FrozenActor> frozen;
    bool replaceable = false;
  };
  SnapshotKeeper() = default;
  Status plan(const KeepFlags& flags);
  // invalid_argument if it can't name a snapshot.
  Result<std::string> name_for(const std::string& asked, const actor::FrozenActor& frozen) const;
  void freeze_and_submit(actor::ActorSystem& system, actor::ActorId id, IfFull if_full);
  Status submit(Job job);
  void fail(const Status& status);
  void work();
  void save(const Job& job);

  std::unique_ptr<snapshot::Store> store_;
  std::map<std::string, std::string> notes_;
  std::string actor_;
  std::string name_;  // of its snapshots
  Schedule schedule_ = Schedule::kNever;
  int64_t every_tokens_ = 0;

  std::map<std::string, std::unique_ptr<actor::ActorSaver>> savers_;  // by actor; the thread's own

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> waiting_;
  bool closing_ = false;
  bool tells_failures_ = true;
  uint64_t failures_ = 0;
  Status first_failure_;
  std::vector<KeptSnapshot> kept_;
  uint64_t replaced_ = 0;
  std::thread thread_;
};

// What was saved, as one line on standard error.
void note_kept(const SnapshotKeeper& keeper);

}  // namespace driftwood::cli
