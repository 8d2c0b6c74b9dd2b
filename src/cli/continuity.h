// The proof of continuity, for `driftwood verify continuity` (docs/snapshots.md): one actor that never stops,
// and others that come to every one of its rest points in another way, compared byte for byte: token ids,
// linear memory, globals, KV, sampler and whatever else a frozen actor holds, and the logits that the next
// step gives.
//
//   warm      it never stops
//   cold      an actor started anew beside it, and a session that prefills all tokens so far at once
//   forked    a live fork of warm, one token on
//   restored  a chain of processes: each restores what the last one saved, goes one token on, saves, and is
//   killed with
//             SIGKILL
//   moved     the same, but between two of them the snapshot is exported, copied to another folder, imported
//   into a new
//             store, and run on another instruction set and number of threads
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actor/frozen_actor.h"
#include "cli/actor_host.h"

namespace driftwood::cli {

struct ContinuityFlags {
  HostFlags host;
  std::string sampling = "both";  // greedy, sampled, both
  int boundaries = 64;
  int prompt_tokens = 40;
  int beside = 3;    // other actors in the batches of a second round; 0: no such round
  std::string work;  // folder for the stores; empty: a temporary one, removed at the end
  bool json = false;
};

// One round: greedy or sampled, alone or beside others.
struct ContinuityRound {
  bool sampled = false;
  int beside = 0;
};

struct ContinuityFigures {
  int64_t boundaries = 0;
  int64_t comparisons = 0;        // of whole actors
  int64_t tokens_recomputed = 0;  // by warm, forked, restored and moved, beyond what was pending
  int64_t kills = 0;
  std::string first_difference;
};

// Runs one round in `folder`, adding to *figures; stops at the first difference.
Status run_continuity_round(ActorHost& host, const ContinuityFlags& flags, const ContinuityRound& round,
                            const std::string& folder, ContinuityFigures* figures);

// What the processes of a chain do: restore (or start, where `from` is empty), one event on, save, say so,
// and wait to be killed.
struct ContinuityStepFlags {
  HostFlags host;
  std::string store;
  std::string from;
  std::string to;
  int prompt_tokens = 40;
  bool sampled = false;
  int beside = 0;
};
Status run_continuity_step(const ContinuityStepFlags& flags);

// What both sides share (continuity_step.cc).
inline constexpr int kPromptBeside = 3;
inline constexpr int kTokensBeside = 2;  // that each of the others generates while this one makes a step
inline constexpr uint64_t kHandlersBefore = 2;  // start and message; then one for every token
std::vector<int32_t> continuity_prompt(int64_t vocabulary, int count, int number);
Result<actor::ActorId> start_continuity_actor(ActorHost& host, const std::string& name, int prompt_tokens,
                                              bool sampled, int number, uint64_t handlers);
Status run_to_handlers(ActorHost& host, actor::ActorId id, uint64_t handlers);

// What the next step gives from a frozen session: computed apart, in a session of its own.
struct NextLogits {
  std::string digest;  // hex SHA-256 of the logits
  int64_t rows = 0;    // computed for it
};
Result<NextLogits> next_logits(engine::Engine& engine, const engine::FrozenSession& session);
// Of the actor's only session: rows computed for it in this process so far.
Result<int64_t> rows_of(engine::Engine& engine, const actor::FrozenActor& frozen);

}  // namespace driftwood::cli
