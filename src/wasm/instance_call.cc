// Entering the guest, its deadline, and what is said when it does not return.
#include "wasm/instance.h"
#include "wasm/trap_message.h"

namespace driftwood::wasm {

void GuestInstance::arm_deadline() {
  EpochTicker& ticker = module_->engine()->ticker();
  ticker.start();
  deadline_at_ = ticker.now() + deadline_ticks_;
  // The guest looks up at every tick: on_epoch() then decides. So an interrupt is seen within one period.
  wasmtime_context_set_epoch_deadline(context_, 1);
}

void GuestInstance::rearm_deadline() { deadline_at_ = module_->engine()->ticker().now() + deadline_ticks_; }

wasmtime_error_t* GuestInstance::on_epoch(wasmtime_context_t*, void* data, uint64_t* delta,
                                          wasmtime_update_deadline_kind_t* kind) {
  auto* self = static_cast<GuestInstance*>(data);
  *delta = 1;
  *kind = WASMTIME_UPDATE_DEADLINE_CONTINUE;
  if (!self->host_call_.is_due()) return nullptr;
  self->set_due_ending();
  return wasmtime_error_new("ended by the host");
}

void GuestInstance::set_due_ending() {
  ending_ = interrupted_.load(std::memory_order_acquire) ? Ending::kInterrupted : Ending::kDeadline;
}

Status GuestInstance::enter(const ResolvedExport& target, wasmtime_val_raw_t* slots, size_t slot_count) {
  if (interrupted_.load(std::memory_order_acquire)) [[unlikely]] {
    alive_ = false;
    death_ = "interrupted before '" + target.name + "'";
    return cancelled("actor '" + options_.actor_name + "': " + death_);
  }
  arm_deadline();
  ending_ = Ending::kTrap;
  in_call_ = true;
  wasm_trap_t* trap = nullptr;
  wasmtime_error_t* error = wasmtime_func_call_unchecked(context_, &target.function, slots, slot_count, &trap);
  in_call_ = false;
  if (error == nullptr && trap == nullptr) [[likely]] {
    // The guest looks at the clock on its own way only: a long host call at the end would go unnoticed.
    if (!host_call_.is_due()) [[likely]] return Status::ok();
    set_due_ending();
  }
  return ended(target.name, !target.signature.results.empty(), error, trap);
}

Status GuestInstance::ended(const std::string& export_name, bool has_results, wasmtime_error_t* error,
                            wasm_trap_t* trap) {
  alive_ = false;
  const std::string frames = trap_frames(error, trap);
  std::string cause;
  Code code = Code::kAborted;
  switch (ending_) {
    case Ending::kTrap:
      cause = "trapped in '" + export_name + "': " + trap_cause(error, trap);
      break;
    case Ending::kHostTrap:
      cause = "trapped in '" + export_name + "': " + host_call_.message();
      break;
    case Ending::kDeadline:
      code = Code::kDeadlineExceeded;
      cause = "'" + export_name + "' ran past its deadline of " + std::to_string(options_.call_deadline.count()) + " ms";
      break;
    case Ending::kInterrupted:
      code = Code::kCancelled;
      cause = "'" + export_name + "' was interrupted";
      break;
    case Ending::kExit:
      cause = "exited with code " + std::to_string(exit_code_) + " in '" + export_name + "'";
      break;
  }
  if (trap != nullptr) wasm_trap_delete(trap);
  if (error != nullptr) wasmtime_error_delete(error);
  death_ = ending_ == Ending::kExit ? cause : cause + frames;
  if (ending_ == Ending::kExit && exit_code_ == 0 && !has_results) return Status::ok();
  return Status(code, "actor '" + options_.actor_name + "' " + death_);
}

}  // namespace driftwood::wasm
