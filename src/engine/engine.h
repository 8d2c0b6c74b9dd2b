// Engine: sessions over one model on one device; every pending row of every session steps together.
//
// A session is a sequence: token ids, KV blocks, sampler. Tokens are appended as ids and become computed when
// the session is stepped; logits then belong to the last computed token.
//
// Scheduling: any thread may call step() on its own session. Callers that arrive together form one batch: one
// of them leads, runs the graph for all waiting sessions (decode rows first, then prompt pieces, at most
// max_batch_tokens rows), and wakes those that are done. A lone caller pays no hand-over. Results do not
// depend on who shares a batch, on piece size or on thread count (docs/numerics.md).
//
// Threads: all methods are thread-safe; one session must not be used by two threads at once
// (failed_precondition if it is). Errors leave the session as it was before the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "device/device.h"
#include "engine/frozen_session.h"
#include "engine/loaded_model.h"
#include "sampler/sampler.h"

namespace driftwood::engine {

using SessionId = uint64_t;

struct EngineOptions {
  int max_batch_tokens = 512;    // rows of one graph run; prompt pieces are cut to it
  DType kv_dtype = DType::kF16;  // kF16 or kF32
  int64_t kv_budget_bytes = 0;   // 0: a quarter of memory
  int64_t max_context = 0;       // tokens per session; 0: the model's own limit
  // Debug: quantised weights times f32 activations, to tell their error from that of int8. Another arithmetic
  // than the device's numerics id names; slow; refused unless the device's isa is "ref".
  bool debug_f32_activations = false;
};

struct SessionOptions {
  int64_t max_tokens = 0;  // 0: engine's max_context
  sampler::SamplerParams sampling;
};

// Receives logits of every computed row of one step: position of the row, V floats valid during the call.
// Called by whichever thread leads the batch, while the session's own caller waits in step(); must not call
// the engine.
using LogitsSink = std::function<void(int64_t position, std::span<const float> logits)>;

struct EngineStats {
  int64_t graph_runs = 0;
  int64_t rows_computed = 0;  // tokens whose layers ran: proves that nothing was computed twice
  int64_t rows_for_logits = 0;
  int64_t kv_blocks_in_use = 0;  // by sessions and by what freeze() handed out
  int64_t kv_blocks_mapped = 0;  // of them on files, copy-on-write
  int64_t kv_block_bytes = 0;
};

class Engine {
 public:
  // `device` outlives the engine.
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<LoadedModel> model, device::Device* device,
                                                const EngineOptions& options);
  virtual ~Engine() = default;
  virtual const LoadedModel& model() const = 0;
  virtual device::Device& device() = 0;

  virtual Result<SessionId> open(const SessionOptions& options) = 0;
  // Same tokens and KV (shared, copied on first write). stream 0 keeps the parent's sampler stream; any other
  // value re-keys it: the child's stream is a hash of the parent's and this one. Unstepped tokens are copied
  // too; logits of the last computed token carry over.
  virtual Result<SessionId> fork(SessionId session, uint64_t stream) = 0;
  virtual Status close(SessionId session) = 0;

  // invalid_argument: an id outside [0, V). out_of_range: more than the session's max_tokens.
  virtual Status append(SessionId session, std::span<const int32_t> ids) = 0;
  virtual Status truncate(SessionId session,
                          int64_t length) = 0;              // keeps KV of the kept tokens, drops logits
  virtual Result<int64_t> length(SessionId session) = 0;    // appended tokens
  virtual Result<int64_t> computed(SessionId session) = 0;  // of them, in KV
  virtual Result<std::vector<int32_t>> tokens(SessionId session) = 0;
  // Tokens whose layers ran for this very session: neither its parent's before a fork, nor what thaw()
  // brought.
  virtual Result<int64_t> rows_computed(SessionId session) = 0;

  // Computes all pending tokens; blocks. failed_precondition if there are none and no logits either.
  virtual Status step(SessionId session, const LogitsSink* all_rows = nullptr) = 0;
  // Logits [V] after the last token, valid until the session's next step, truncate or close.
  virtual Result<std::span<const float>> logits(SessionId session) = 0;
  // Draws the token for position length(); does not append it. `allowed`: see sampler.h.
  virtual Result<int32_t> sample(SessionId session, std::span<const uint64_t> allowed = {}) = 0;
  virtual Status set_sampling(SessionId session, const sampler::SamplerParams& params) = 0;
  virtual Result<sampler::SamplerParams> sampling(SessionId session) = 0;

  // What a session opened with `max_tokens` has to match to go on here bit for bit.
  virtual SessionIdentity identity(int64_t max_tokens) const = 0;
  // The session as a value (frozen_session.h); the session itself goes on. Full blocks are shared, not
  // copied, and so is the row of logits: cost is one block and the ids. failed_precondition: the session is
  // in use, or the engine runs a debug arithmetic, which its numerics id does not name.
  virtual Result<FrozenSession> freeze(SessionId session) = 0;
  // A new session that goes on where `frozen` stopped; nothing is computed. KV in memory is copied, KV in
  // files is mapped and costs nothing until it is touched (frozen_session.h). Everything is checked before
  // anything changes: failed_precondition naming the first field of identity that differs with both values,
  // invalid_argument for what contradicts itself, data_loss for a file that is too short, resource_exhausted
  // where the KV budget has no room. Whatever else fails (the system's mappings are used up, a read) leaves
  // no session.
  virtual Result<SessionId> thaw(const FrozenSession& frozen) = 0;

  virtual EngineStats stats() const = 0;
  virtual int64_t max_context() const = 0;
};

}  // namespace driftwood::engine
