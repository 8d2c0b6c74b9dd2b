// Continuity, checked: a session that never stopped ("warm") against sessions that came to the same tokens in
// other ways. At every boundary between two tokens each way must have the same ids, sampler, logits bytes and
// KV bytes, draw the same token, and have the same again after computing it, without computing another.
//
// A way is a function that makes a session equal to the warm one, in its own or another engine; those that
// need files or processes are added by whoever has them. Cost: one prefill per boundary for cold_prefill, two
// freezes and one step per boundary and way. Threads: any; other sessions may step beside in all engines.
// Errors: only what keeps the check from running; a difference is a result.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace driftwood::engine {

struct PlacedSession {
  Engine* engine = nullptr;
  SessionId session = 0;
};

struct ContinuityWay {
  std::string name;
  bool computes_all = false;  // computes every token by its nature; other ways compute none
  // A new session, closed by the check. `warm` is not in use and must not be changed.
  std::function<Result<PlacedSession>(Engine& engine, SessionId warm)> enter;
};

ContinuityWay cold_prefill();
ContinuityWay forked();
// Frozen and thawed in `elsewhere`, which outlives the way and may be the same engine.
ContinuityWay thawed_in(Engine* elsewhere);

struct ContinuityOptions {
  std::vector<int32_t> prompt;  // one token or more
  int64_t boundaries = 64;      // drawn tokens; a boundary lies before each
  SessionOptions session;
};

struct ContinuityReport {
  int64_t ways = 0;  // with the warm session
  int64_t boundaries = 0;
  int64_t comparisons = 0;        // pairs of whole sessions
  int64_t tokens_recomputed = 0;  // by warm, forked and thawed sessions, beyond one step each
  std::string first_difference;   // empty: none
  bool equal() const { return first_difference.empty() && tokens_recomputed == 0; }
};

// Stops at the first difference.
Result<ContinuityReport> verify_continuity(Engine& engine, std::span<const ContinuityWay> ways,
                                           const ContinuityOptions& options);

// What differs first: "logit 7", "KV block 1, byte 512"; empty if ids, counts, sampler, logits and KV are
// equal byte for byte. Identities are not compared; KV in files is no equal of anything (read_kv() first).
std::string first_difference(const FrozenSession& a, const FrozenSession& b);

}  // namespace driftwood::engine
