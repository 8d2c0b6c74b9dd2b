// GuestInstance: one store, one instance, one linear memory; what runtime.h calls Instance.
//
// A call arms the epoch deadline, enters the guest with raw slots and, if it does not return, says why and
// marks the instance dead. Host functions come back in through call_host_function. One thread at a time, but
// interrupt() from anywhere. The store (and with it the memory) goes with the object.
#pragma once

#include <wasmtime.h>

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "wasm/fork_image.h"
#include "wasm/host_call.h"
#include "wasm/linear_memory.h"
#include "wasm/module.h"
#include "wasm/runtime.h"
#include "wasm/wasi/wasi_state.h"

namespace driftwood::wasm {

class GuestInstance final : public Instance {
 public:
  static Result<std::unique_ptr<Instance>> create(std::shared_ptr<CompiledModule> module,
                                                  std::span<const HostImport> imports,
                                                  InstanceOptions options);
  static Result<std::unique_ptr<Instance>> restore(std::shared_ptr<CompiledModule> module,
                                                   std::span<const HostImport> imports,
                                                   InstanceOptions options, const FrozenMemory& memory,
                                                   std::span<const GlobalValue> globals);
  ~GuestInstance() override;

  Result<std::vector<uint64_t>> call(std::string_view export_name, std::span<const uint64_t> args) override;
  Result<int> resolve(std::string_view export_name, const Signature& signature) override;
  Status call_resolved(int handle, std::span<const uint64_t> args, std::span<uint64_t> results) override;
  bool has_export(std::string_view export_name) const override;
  region::Region& memory() override { return *region_; }
  uint64_t memory_bytes() const override { return region_->committed_bytes(); }
  uint8_t* bytes(uint64_t offset, uint64_t length) override {
    return region_->contains(offset, length) ? region_->base() + offset : nullptr;
  }
  bool alive() const override { return alive_; }
  const std::string& actor_name() const override { return options_.actor_name; }
  int exit_code() const override { return exit_code_; }
  void rearm_deadline() override;
  void interrupt() override { interrupted_.store(true, std::memory_order_release); }
  std::vector<std::string> open_files() const override { return wasi_->open_files(); }
  Status can_freeze() const override;
  Result<std::vector<GlobalValue>> globals() override;
  Status set_globals(std::span<const GlobalValue> values) override;
  Result<FrozenMemory> freeze_memory() override;
  Result<FrozenMemory> fork_memory() override;

  // Wasmtime's own idea of the memory, for the proof that it is the region.
  uint8_t* wasmtime_memory_base() override;

 private:
  friend wasm_trap_t* call_host_function(void*, wasmtime_caller_t*, wasmtime_val_raw_t*, size_t);
  friend class HostCall;

  struct ResolvedExport {
    std::string name;
    wasmtime_func_t function;
    Signature signature;
  };
  enum class Ending : uint8_t { kTrap, kDeadline, kInterrupted, kHostTrap, kExit };

  GuestInstance(std::shared_ptr<CompiledModule> module, InstanceOptions options);
  Status start(std::span<const HostImport> imports);
  Status start_from(std::span<const HostImport> imports, const FrozenMemory& memory,
                    std::span<const GlobalValue> globals);
  Status prepare(std::span<const HostImport> imports);
  void make_store();
  Status instantiate(const MemoryImage* image);
  Status run_start_functions();
  void adopt_image(const MemoryImage& image);
  void place_patches(std::span<const MemoryPatch> patches);
  Result<std::vector<region::ByteRange>> changed_ranges() const;
  std::vector<region::ByteRange> not_zero(std::span<const region::ByteRange> changed) const;
  std::vector<MemoryPatch> patches_in_place(std::span<const region::ByteRange> ranges) const;
  Result<wasmtime_global_t> exported_global(uint32_t index);
  Result<int> resolve_any(std::string_view export_name);
  Status usable() const;
  void arm_deadline();
  void set_due_ending();
  Status enter(const ResolvedExport& target, wasmtime_val_raw_t* slots, size_t slot_count);
  Status ended(const std::string& export_name, bool has_results, wasmtime_error_t* error, wasm_trap_t* trap);
  static wasmtime_error_t* on_epoch(wasmtime_context_t*, void* data, uint64_t* delta,
                                    wasmtime_update_deadline_kind_t* kind);

  std::shared_ptr<CompiledModule> module_;
  std::shared_ptr<LinkSet> links_;
  InstanceOptions options_;
  std::unique_ptr<WasiState> wasi_;
  HostCall host_call_;
  wasmtime_store_t* store_ = nullptr;
  wasmtime_context_t* context_ = nullptr;
  wasmtime_instance_t instance_;
  region::Region* region_ = nullptr;              // the store's linear memory, or empty_region_
  std::unique_ptr<region::Region> empty_region_;  // of a module without a memory
  MemoryImage image_;                             // what the memory began with; empty: zeros
  bool image_is_known_ = true;                    // false: with files that nobody keeps open
  std::unique_ptr<ForkImage> fork_image_;         // what children begin with, once it is worth one
  uint64_t copied_by_forks_ = 0;                  // since the image was made
  std::vector<ResolvedExport> resolved_;
  std::unordered_map<std::string, int> handles_;
  uint64_t deadline_ticks_ = 0;  // per call; 0: none
  uint64_t deadline_at_ = 0;     // on the ticker's clock
  std::atomic<bool> interrupted_{false};
  bool alive_ = true;
  bool in_call_ = false;
  Ending ending_ = Ending::kTrap;
  int exit_code_ = -1;
  std::string death_;  // why it is dead
};

// The closure of every host function: env is a BoundImport, the store's data is the GuestInstance.
wasm_trap_t* call_host_function(void* env, wasmtime_caller_t* caller, wasmtime_val_raw_t* slots,
                                size_t slot_count);

}  // namespace driftwood::wasm
