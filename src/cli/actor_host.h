// Everything an actor needs around it, composed from flags: Wasm runtime, device, model, engine, actor
// system. Shared by `run`, `chat`, `proof` and `snapshot`.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "actor/actor.h"
#include "cli/composition.h"
#include "wasm/runtime.h"

namespace driftwood::cli {

struct HostFlags {
  EngineFlags engine;
  bool model_is_optional = true;  // `run`: the default model may be absent, calls then answer unavailable
};

void add_host_flags(CLI::App* cmd, HostFlags* flags);

class ActorHost {
 public:
  static Result<std::unique_ptr<ActorHost>> open(const HostFlags& flags);
  ~ActorHost();

  Result<std::shared_ptr<wasm::Module>> load_file(const std::string& path);
  Result<std::shared_ptr<wasm::Module>> load_bytes(const std::string& name, std::span<const uint8_t> bytes);
  // Outputs go to standard output and logs to standard error unless `options` has sinks of its own.
  Result<actor::ActorId> spawn(const std::string& name, std::shared_ptr<wasm::Module> module,
                               actor::ActorOptions options);
  Result<actor::ActorId> thaw(const std::string& name, const actor::FrozenActor& frozen,
                              std::shared_ptr<wasm::Module> module, actor::ActorOptions options);

  // Sends one message and waits until the actor has nothing left to do.
  Status turn(actor::ActorId id, std::string_view message);
  // Waits until it is idle or has ended; an end without a fault is ok.
  Status wait_turn(actor::ActorId id);

  actor::ActorSystem& system() { return *system_; }
  wasm::Runtime& runtime() { return *runtime_; }
  OpenedEngine& opened() { return opened_; }

 private:
  ActorHost() = default;
  OpenedEngine opened_;
  std::shared_ptr<wasm::Runtime> runtime_;
  std::unique_ptr<actor::ActorSystem> system_;
};

}  // namespace driftwood::cli
