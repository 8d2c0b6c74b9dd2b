#include "wasm/engine.h"

#include <dw_bridge.h>

#include "os/cpu_identity.h"
#include "wasm/linear_memory.h"

namespace driftwood::wasm {
namespace {

// One entry per switch: what is set and what goes into the fingerprint cannot drift apart.
class Configuration {
 public:
  Configuration() : config_(wasm_config_new()) { text_ = dwb_version(); }

  template <typename Value>
  void set(const char* name, void (*setter)(wasm_config_t*, Value), Value value) {
    setter(config_, value);
    text_ += std::string(" ") + name + "=" + std::to_string(static_cast<long long>(value));
  }
  wasm_config_t* config() { return config_; }
  const std::string& text() const { return text_; }

 private:
  wasm_config_t* config_;
  std::string text_;
};

#define DW_SET(c, name, value) (c).set(#name, wasmtime_config_##name##_set, value)

void set_features(Configuration& c) {
  DW_SET(c, wasm_simd, true);
  DW_SET(c, wasm_relaxed_simd, true);
  DW_SET(c, wasm_bulk_memory, true);
  DW_SET(c, wasm_multi_value, true);
  DW_SET(c, wasm_reference_types, true);
  DW_SET(c, wasm_tail_call, true);
  // Off: each would be state that a snapshot does not hold, or threads in one store.
  DW_SET(c, wasm_threads, false);
  DW_SET(c, shared_memory, false);
  DW_SET(c, wasm_multi_memory, false);
  DW_SET(c, wasm_memory64, false);
  DW_SET(c, wasm_function_references, false);
  DW_SET(c, wasm_gc, false);
  DW_SET(c, wasm_exceptions, false);
  DW_SET(c, wasm_stack_switching, false);
  DW_SET(c, wasm_custom_page_sizes, false);
  DW_SET(c, wasm_wide_arithmetic, false);
  DW_SET(c, gc_support, false);
}

void set_behaviour(Configuration& c, bool deterministic) {
  DW_SET(c, cranelift_nan_canonicalization, deterministic);
  DW_SET(c, wasm_relaxed_simd_deterministic, deterministic);
  DW_SET(c, epoch_interruption, true);
  DW_SET(c, max_wasm_stack, kWasmStackBytes);
  DW_SET(c, parallel_compilation, true);
  DW_SET(c, memory_init_cow, false);
  // Base pointers never change: everything fits into the reservation.
  DW_SET(c, memory_may_move, false);
  DW_SET(c, memory_reservation, uint64_t{1} << 32);
  DW_SET(c, memory_guard_size, uint64_t{32} << 20);
}

#undef DW_SET

}  // namespace

Result<std::shared_ptr<Engine>> Engine::create(const RuntimeOptions& options) {
  Configuration configuration;
  set_features(configuration);
  set_behaviour(configuration, options.require_deterministic);
  wasmtime_memory_creator_t creator = memory_creator();
  wasmtime_config_host_memory_creator_set(configuration.config(), &creator);
  std::shared_ptr<Engine> engine(new Engine());
  engine->engine_ = wasm_engine_new_with_config(configuration.config());
  if (engine->engine_ == nullptr) return internal_error("Wasmtime refused its configuration");
  engine->fingerprint_ = configuration.text() + " cpu=" + os::cpu_identity();
  wasm_engine_t* raw = engine->engine_;
  engine->ticker_ =
      std::make_unique<EpochTicker>(options.epoch_period, [raw] { wasmtime_engine_increment_epoch(raw); });
  return engine;
}

Engine::~Engine() {
  ticker_.reset();
  if (engine_ != nullptr) wasm_engine_delete(engine_);
}

std::string take_message(wasmtime_error_t* error) {
  wasm_name_t text;
  wasmtime_error_message(error, &text);
  std::string message(text.data, text.size);
  wasm_name_delete(&text);
  wasmtime_error_delete(error);
  return message;
}

}  // namespace driftwood::wasm
