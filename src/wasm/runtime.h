// The Wasm runtime: one Wasmtime engine per process, modules rewritten at load, one store per instance,
// linear memory on a Region (DESIGN 4.1, 4.5).
//
// Runtime is shared and thread-safe. A Module is immutable and shared. An Instance belongs to one thread at a
// time. wasm knows nothing of inference: host calls come in through HostModule.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "region/region.h"
#include "wasm/frozen_state.h"

namespace driftwood::wasm {

// A value crossing the boundary. i32 is kept sign-extended in `bits`; f32/f64 as raw bits.
enum class ValueType : uint8_t { kI32, kI64, kF32, kF64 };
struct Signature {
  std::vector<ValueType> params;
  std::vector<ValueType> results;
  bool operator==(const Signature&) const = default;
};

class Instance;

// What a host function may do while the guest is blocked in the call.
class CallContext {
 public:
  virtual ~CallContext() = default;
  virtual Instance& instance() = 0;
  // Ends the guest: the call never returns to it and the instance is dead (message names the cause).
  virtual void trap(std::string message) = 0;
  virtual void* user() = 0;  // InstanceOptions::user
};

// Host function: args in and results out are raw 64-bit slots, args[i] of the i-th parameter; results[0] is
// the result. Called on the instance's thread. Must not throw. After trap() its results are ignored.
using HostFunction = void (*)(CallContext&, const uint64_t* args, uint64_t* results);

struct HostImport {
  std::string module;  // "driftwood"
  std::string name;
  Signature signature;
  HostFunction function;
};

struct RuntimeOptions {
  std::string cache_dir;                       // precompiled modules, keyed by hash; empty: none
  std::chrono::milliseconds epoch_period{10};  // granularity of CPU deadlines
  bool require_deterministic = true;           // NaN canonicalisation, deterministic relaxed SIMD
};

// What was found out about a module when it was loaded.
struct ModuleReport {
  std::vector<std::string> snapshot_blockers;  // empty: an instance can be frozen
  std::vector<std::string> notes;
  std::vector<std::string> exports;  // exported function names
  std::string hash_hex;              // BLAKE3 of the original bytes (text format: of its binary form)
  bool from_cache = false;           // compiled code came from the cache
};

class Module {
 public:
  virtual ~Module() = default;
  virtual const ModuleReport& report() const = 0;
  virtual const std::string& name() const = 0;
  // The original bytes (text format: its binary form), whose hash is report().hash_hex.
  virtual std::span<const uint8_t> code() const = 0;
};

// WASI preview 1 grants. Nothing by default: no folder, no environment, no arguments; stdout and stderr go to
// the sinks (null sink: dropped). Clock and random come from these functions, so that they can be recorded.
struct WasiOptions {
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  struct Folder {
    std::string guest_path;
    std::string host_path;
    bool writable = false;
  };
  std::vector<Folder> folders;
  // false: not taken, the guest's write fails with ENOSPC.
  std::function<bool(std::string_view)> stdout_sink;
  std::function<bool(std::string_view)> stderr_sink;
  std::function<uint64_t(uint32_t clock_id)> clock_ns;   // default: real clocks
  std::function<void(std::span<uint8_t>)> random_bytes;  // default: the operating system
};

struct InstanceOptions {
  std::string actor_name = "actor";  // named in every message
  uint64_t max_memory_bytes = 256u << 20;
  uint32_t max_table_elements = 100000;
  std::chrono::milliseconds call_deadline{5000};  // per guest call; 0: none
  WasiOptions wasi;
  void* user = nullptr;
};

// Running code of one actor. After a trap or an exit it is dead: every later call fails with
// failed_precondition, memory stays readable until destruction and is never used as an actor again.
class Instance {
 public:
  virtual ~Instance() = default;

  // Calls an export with raw slots. Errors: not_found (no such export), invalid_argument (signature),
  // aborted (trap; message: actor, function, cause, first frames), deadline_exceeded, cancelled
  // (interrupt()), failed_precondition (dead, or called from inside one of its own host calls).
  virtual Result<std::vector<uint64_t>> call(std::string_view export_name,
                                             std::span<const uint64_t> args) = 0;
  // A resolved export, for calls in a hot loop: no lookup, no allocation. Valid while the instance lives.
  virtual Result<int> resolve(std::string_view export_name, const Signature& signature) = 0;
  virtual Status call_resolved(int handle, std::span<const uint64_t> args, std::span<uint64_t> results) = 0;
  virtual bool has_export(std::string_view export_name) const = 0;

  // Linear memory: the region's own bytes. Size may change on every guest call; base never does.
  virtual region::Region& memory() = 0;
  virtual uint64_t memory_bytes() const = 0;
  // Host pointer of [offset, offset + length) within the current size, or null. Overflow-safe.
  virtual uint8_t* bytes(uint64_t offset, uint64_t length) = 0;

  // The base of linear memory as Wasmtime reports it: equal to memory().base(), which proofs and tests
  // compare.
  virtual uint8_t* wasmtime_memory_base() = 0;

  virtual bool alive() const = 0;
  virtual const std::string& actor_name() const = 0;
  virtual int exit_code()
      const = 0;  // after proc_exit; -1 before. proc_exit(0) out of a call without results is ok

  // For host functions that take long (a model's step): the running call's deadline starts anew.
  virtual void rearm_deadline() = 0;
  // From any thread: the running call, or the next one, ends with cancelled within an epoch period and the
  // instance is dead. A host call is not broken off: it ends at its return.
  virtual void interrupt() = 0;
  // Guest paths of the files the guest has open through WASI: while there are any it cannot be frozen.
  virtual std::vector<std::string> open_files() const = 0;

  // Ok at a rest point of a guest that can be frozen; else failed_precondition with every reason.
  virtual Status can_freeze() const = 0;
  // Every mutable global of the module, by ascending index. Only between calls: failed_precondition if the
  // instance is dead or in a call. unimplemented if a global holds a reference (a snapshot blocker, then).
  virtual Result<std::vector<GlobalValue>> globals() = 0;
  // Sets them all: invalid_argument names what is missing, unknown, of another type or there twice, and
  // nothing is set then.
  virtual Status set_globals(std::span<const GlobalValue> values) = 0;

  // Memory as a value: the image the instance lives on and a copy of every page that was written since. Cost:
  // a scan of the page tables and a copy of the written pages. An image without an owner is not told again
  // (its descriptors may be anything by now): then all that is not zero is copied. failed_precondition if the
  // instance is dead or in a call; whether memory and globals are all of the guest's state is can_freeze()'s
  // to say, and not looked at here.
  virtual Result<FrozenMemory> freeze_memory() = 0;
  // The same for a child that Runtime::restore makes before this guest runs again or is destroyed: nothing is
  // copied here where the written pages are few; where they are many, an image is made of this memory once
  // (an anonymous file) and later forks patch only what was written since. Without a descriptor for that all
  // written pages are patches. This guest's own memory is never remapped.
  virtual Result<FrozenMemory> fork_memory() = 0;
};

class Runtime {
 public:
  static Result<std::shared_ptr<Runtime>> create(const RuntimeOptions& options);
  virtual ~Runtime() = default;

  // Validates, rewrites (globals exported, data and start moved into __dw_init) and compiles.
  virtual Result<std::shared_ptr<Module>> load(std::string name, std::span<const uint8_t> bytes) = 0;
  virtual Result<std::shared_ptr<Module>> load_file(const std::string& path) = 0;

  // Instantiates with these imports plus WASI, runs __dw_init then _initialize (reactor) if exported. A
  // command
  // (_start) is not started here. Errors: not_found or invalid_argument name the missing or mismatched
  // import, resource_exhausted the limit that the module's own sizes exceed, aborted and deadline_exceeded
  // the start-up.
  virtual Result<std::unique_ptr<Instance>> instantiate(std::shared_ptr<Module> module,
                                                        std::span<const HostImport> imports,
                                                        InstanceOptions options) = 0;

  // An instance that goes on from a rest point: memory is the image, mapped copy-on-write whatever its size,
  // with the patches copied over it; globals are `globals`. No code of the guest runs and no data segment is
  // copied. The instance keeps the image's owner. Errors beside instantiate's: failed_precondition if the
  // module has snapshot blockers (named), invalid_argument for globals, pieces, patches or sizes that are not
  // this module's, resource_exhausted for a memory above max_memory_bytes, data_loss if a file is too short.
  virtual Result<std::unique_ptr<Instance>> restore(std::shared_ptr<Module> module,
                                                    std::span<const HostImport> imports,
                                                    InstanceOptions options, const FrozenMemory& memory,
                                                    std::span<const GlobalValue> globals) = 0;
};

}  // namespace driftwood::wasm
