// Actors: guests with sessions, mailbox, timers and identity, run event by event (DESIGN 4.2, 4.6, 4.7).
//
// An actor is one Wasm instance. Its handlers run one at a time on a bounded pool of threads; an actor that
// waits holds no thread. Its event loop takes, in this order: the start, one message, one due timer, one
// token of one outstanding generate (round-robin in order of issue). A module that exports `_start` and no
// handlers runs as a command: start is its whole life. What a handler sends, emits or prints becomes visible
// when it returns, each piece numbered (actor, epoch, sequence); a trapped handler leaves none and ends its
// actor: sessions are closed, memory is freed, the status says who, where and why, and nobody else notices.
//
// Threads: ActorSystem is thread-safe. Sinks are called on a pool thread, one call at a time per actor,
// without a lock held; they must not call stop() or wait for their own actor. Ownership: the system owns its
// actors; runtime, engine and device outlive it. Errors: a guest's faults end that guest, everything else is
// a Status.
//
// Between two events an actor is at rest and all of it is data: it can be frozen to a value (frozen_actor.h),
// thawed, and forked; docs/snapshots.md tells what that holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "engine/engine.h"
#include "wasm/runtime.h"

namespace driftwood::actor {

// An actor's id is a hash of its name (actor_id_of), so that a restored actor is who it was and an id that
// somebody kept never means anybody else.
using ActorId = uint64_t;
inline constexpr ActorId kOutside = 0;  // sender of messages that no actor sent

// What one actor may use. A call that would exceed one gives resource_exhausted; memory.grow fails; a handler
// that runs too long is ended.
struct ActorLimits {
  uint64_t max_memory_bytes = 256u << 20;
  std::chrono::milliseconds handler_deadline{5000};  // guest and tensor time of one handler; 0: none. Waiting
                                                     // for the model does not count
  int64_t max_tokens = 1 << 24;                      // appended and generated over the actor's life
  int32_t max_sessions = 16;                         // at most 4096
  uint64_t max_message_bytes = 1u << 20;
  int32_t max_mailbox = 1024;  // messages waiting
  int32_t max_generates = 16;  // outstanding
  int32_t max_timers = 256;
  uint64_t max_effect_bytes = 4u << 20;  // sent, emitted, printed and logged by one handler
};

enum class OutputKind : uint8_t {
  kEmit,    // emit()
  kReply,   // reply() or send_to() to the world outside
  kStdout,  // WASI stdout
};

// One visible effect for the world outside. `bytes` is valid during the call.
struct Output {
  ActorId actor = 0;
  uint64_t epoch = 0;     // how often the actor has been started or restored, from 1
  uint64_t sequence = 0;  // of all its effects, from 1; gaps are effects that went to other actors
  OutputKind kind = OutputKind::kEmit;
  std::string_view bytes;
};
// Both sinks are called on the actor's thread. Forks share their parent's and run on other threads, at once
// too; what a sink refers to outlives the actor system.
using OutputSink = std::function<void(const Output&)>;
// Diagnostics, not effects: log() and WASI stderr appear at once. level as in the ABI, 0 debug to 3 error.
using LogSink = std::function<void(ActorId actor, int level, std::string_view text)>;

struct FrozenActor;
// What checkpoint() of a guest leads to: called at the rest point after the handler, on the actor's thread.
// The state is the callee's; a name may be empty. Its status is only logged.
using CheckpointSink = std::function<Status(const std::string& name, std::shared_ptr<FrozenActor> frozen)>;

// Where an actor is to stop: it runs no further event, mailbox and timers included, once it has generated
// that many tokens or run that many handlers in its life. It counts as idle then.
struct HoldPoint {
  int64_t tokens_generated = std::numeric_limits<int64_t>::max();
  uint64_t handlers_run = std::numeric_limits<uint64_t>::max();
};

struct ActorOptions {
  ActorLimits limits;
  std::vector<uint8_t> config;  // what config_read() gives
  uint64_t seed = 0;            // of the guest's random numbers (ours and WASI's)
  wasm::WasiOptions wasi;       // args, env and folders are used; sinks, clock and random are the actor's own
  OutputSink output;
  LogSink log;
  CheckpointSink checkpoint;  // null: the guest's checkpoint() answers unavailable
  HoldPoint hold_at;
};

enum class ActorState : uint8_t {
  kBusy,     // has work: a handler runs or events wait
  kIdle,     // waits for a message or a timer, or is held
  kExited,   // a command that returned or called exit, or a guest that exited in a handler
  kStopped,  // by stop()
  kTrapped,  // a guest fault; `status` names actor, handler and cause
};
std::string_view actor_state_name(ActorState state);

struct ActorStatus {
  ActorId id = 0;
  std::string name;
  ActorState state = ActorState::kIdle;
  Status status;  // why it ended; ok unless trapped
  int exit_code = 0;
  uint64_t handlers_run = 0;
  uint64_t effects = 0;  // sequence of the last visible effect
  int64_t tokens_appended = 0;
  int64_t tokens_generated = 0;
  uint64_t memory_bytes = 0;  // of the last rest point
  int32_t sessions = 0;
  int32_t timers = 0;  // set and not yet due
  int32_t mailbox = 0;
  bool held = false;
  std::string parent;             // hash of the snapshot it was thawed from
  uint64_t messages_dropped = 0;  // sent to actors that had ended or were full when the handler returned

  bool ended() const { return state >= ActorState::kExited; }
};

struct ActorSystemOptions {
  int threads =
      0;  // handlers that may run or wait for the model at the same time; 0: twice the processors, at least 8
};

class ActorSystem {
 public:
  // `engine` may be null (text and session calls answer unavailable), `device` too (tensor calls do).
  static std::unique_ptr<ActorSystem> create(std::shared_ptr<wasm::Runtime> runtime, engine::Engine* engine,
                                             device::Device* device, const ActorSystemOptions& options);
  virtual ~ActorSystem() = default;  // ends every actor

  // Instantiates the module here and now, so that a bad module is an error here; handlers run on the pool.
  // already_exists: a living actor has that name. invalid_argument: the module exports no handler and no
  // _start.
  virtual Result<ActorId> spawn(const std::string& name, std::shared_ptr<wasm::Module> module,
                                ActorOptions options) = 0;

  // A message from outside. not_found: unknown or ended; resource_exhausted: mailbox full or message too
  // large.
  virtual Status send(ActorId id, std::span<const uint8_t> bytes) = 0;

  // Ends an actor at its next rest point and waits for that; a handler that takes more than a second is
  // broken off. Ended already: ok. not_found: unknown.
  virtual Status stop(ActorId id) = 0;

  // Until nothing is left to do but timers that are not due: ok; or it ended: its status.
  virtual Status wait_idle(ActorId id, std::chrono::milliseconds timeout) = 0;
  // Until it ended; its status.
  virtual Status wait_exit(ActorId id, std::chrono::milliseconds timeout) = 0;

  // The actor's whole state at its next rest point, after which it goes on: waits for the handler that runs
  // and takes what copying its written memory costs; KV is shared, not copied. Not from a sink of that actor.
  // failed_precondition: it can't be frozen, with the reason; not_found: it has ended.
  virtual Result<std::shared_ptr<FrozenActor>> freeze(ActorId id) = 0;
  // A new actor that goes on where `frozen` stopped; no guest code runs here, no token is computed. Of
  // `options` count: the sinks, hold_at, limits (caps of what the actor had), and folders, which must
  // grant what it had (failed_precondition names what is missing). `module` may be null if `frozen` has it.
  // failed_precondition: an identity that differs, with both values. Nothing is left behind on an error.
  virtual Result<ActorId> thaw(const std::string& name, const FrozenActor& frozen,
                               std::shared_ptr<wasm::Module> module, ActorOptions options) = 0;
  // A copy of a living actor at its next rest point: mailbox and timers are copied, KV and clean memory pages
  // are shared. Stream 0 goes on as the parent would; any other re-keys samplers and random numbers.
  virtual Result<ActorId> fork(ActorId id, const std::string& name, uint64_t stream) = 0;
  // Replaces the actor's hold point; HoldPoint{} lets it go on.
  virtual Status hold_at(ActorId id, const HoldPoint& point) = 0;

  // Ended actors are remembered for the last 1,024 ends.
  virtual Result<ActorStatus> status(ActorId id) const = 0;
  virtual Result<ActorId> find(std::string_view name) const = 0;  // living actors only
  virtual std::vector<ActorStatus> list() const = 0;              // living actors by id
};

// Why no actor of this module can be frozen: the module's own reasons, and that a command (_start and no
// handlers) has no rest point. Empty: it can be.
std::vector<std::string> freeze_blockers(const wasm::ModuleReport& report);

// The id of any actor of that name; never kOutside.
ActorId actor_id_of(std::string_view name);

// ---- the host-call table: what guests can import ----

struct HostCall {
  std::string_view group;  // "info", "text", "session", "generate", "message", "tensor", "timer", "state"
  std::string_view name;
  std::string_view parameters;  // "ptr text, len length, i32 flags": ptr and len travel as i32
  std::string_view result;      // "i32" or "i64"
  wasm::HostFunction function;
};
// All of them, in the order of docs/abi.md.
std::span<const HostCall> host_calls();
// The same as imports for Runtime::instantiate; built once.
const std::vector<wasm::HostImport>& host_imports();

}  // namespace driftwood::actor
