#include "wasm/host_call.h"

#include "wasm/instance.h"
#include "wasm/signature.h"

namespace driftwood::wasm {

Instance& HostCall::instance() { return *owner_; }

void HostCall::trap(std::string message) {
  if (ends_) return;  // the first cause is the one to tell
  ends_ = true;
  message_ = std::move(message);
  owner_->ending_ = GuestInstance::Ending::kHostTrap;
}

void HostCall::exit(int code) {
  if (ends_) return;
  ends_ = true;
  owner_->exit_code_ = code;
  owner_->ending_ = GuestInstance::Ending::kExit;
}

WasiState& HostCall::wasi() { return *owner_->wasi_; }

bool HostCall::end_if_due() {
  if (ends_) return true;
  if (!is_due()) return false;
  ends_ = true;
  owner_->set_due_ending();
  return true;
}

bool HostCall::is_due() const {
  if (owner_->interrupted_.load(std::memory_order_acquire)) return true;
  return owner_->deadline_ticks_ != 0 && owner_->module_->engine()->ticker().now() >= owner_->deadline_at_;
}

std::chrono::milliseconds HostCall::poll_period() const { return owner_->module_->engine()->ticker().period(); }

namespace {

// GuestInstance::ended() builds the message that people see; this one only names the place.
[[gnu::noinline, gnu::cold]] wasm_trap_t* unwind(const BoundImport& bound) {
  const std::string place = bound.import.module + "." + bound.import.name;
  return wasmtime_trap_new(place.data(), place.size());
}

}  // namespace

wasm_trap_t* call_host_function(void* env, wasmtime_caller_t* caller, wasmtime_val_raw_t* slots, size_t) {
  const auto& bound = *static_cast<const BoundImport*>(env);
  auto* instance = static_cast<GuestInstance*>(wasmtime_context_get_data(wasmtime_caller_context(caller)));
  uint64_t args[kMaxParams];
  uint64_t results[kMaxResults];
  results[0] = 0;
  for (size_t i = 0; i < bound.param_count; ++i) args[i] = slot_bits(slots[i], bound.params[i]);
  HostCall& call = instance->host_call_;
  bound.function(call, args, results);
  if (call.ends()) [[unlikely]] return unwind(bound);
  for (size_t i = 0; i < bound.result_count; ++i) set_slot(&slots[i], bound.results[i], results[i]);
  return nullptr;
}

}  // namespace driftwood::wasm
