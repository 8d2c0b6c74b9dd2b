// The generates an actor has outstanding, stepped one token each in turn, and those that ended and whose
// guest has not been told yet. Used by the actor's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/status.h"

namespace driftwood::actor {

// `reason` of dw_on_done; numbers are the ABI's.
enum class DoneReason : int32_t {
  kMaxTokens = 0,
  kEndToken = 1,
  kStopped = 2,
  kCancelled = 3,
  kContextFull = 4,
  kLimit = 5,
  kError = 6,
};

struct Generate {
  int64_t tag = 0;
  uint64_t serial = 0;  // given by add(): tells two with one tag apart
  int32_t session = 0;  // guest handle
  bool stop_at_end = false;
  int64_t max_tokens = 0;  // 0: no limit of its own
  int64_t produced = 0;    // tokens appended
};

struct GenerateDone {
  int64_t tag = 0;
  int32_t session = 0;
  DoneReason reason = DoneReason::kMaxTokens;
  int64_t tokens = 0;
  std::string message;  // kError, kLimit
};

// All there is of an actor's generates.
struct GeneratesState {
  std::vector<Generate> running;
  std::deque<GenerateDone> ended;
  size_t turn = 0;  // index into running
  uint64_t last_serial = 0;
};

class Generates {
 public:
  explicit Generates(int32_t limit) : limit_(limit) {}

  const GeneratesState& state() const { return state_; }
  void adopt(GeneratesState state) { state_ = std::move(state); }

  // already_exists: the tag is outstanding; resource_exhausted: the limit.
  Status add(Generate generate);
  Generate* find(int64_t tag);
  // The one whose turn it is, or null. Precondition of the turn: advance() or end() before the next call.
  Generate* current();
  void advance();
  // Moves it to the ended ones.
  void end(int64_t tag, DoneReason reason, std::string message);

  bool any() const { return !state_.running.empty(); }
  bool any_ended() const { return !state_.ended.empty(); }
  GenerateDone take_ended();

 private:
  int32_t limit_;
  GeneratesState state_;
};

}  // namespace driftwood::actor
