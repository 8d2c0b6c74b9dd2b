// Engine: the configured Wasmtime engine and its epoch ticker, shared by runtime, modules and instances.
//
// The configuration is fixed here and nowhere else; fingerprint() names it, so that compiled code from another
// configuration, Wasmtime or processor is never taken from a cache. Immutable and thread-safe.
#pragma once

#include <wasmtime.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "wasm/epoch_ticker.h"
#include "wasm/runtime.h"

namespace driftwood::wasm {

inline constexpr size_t kWasmPageBytes = 65536;
inline constexpr size_t kWasmStackBytes = 512 << 10;
inline constexpr size_t kMaxModuleBytes = 64u << 20;

class Engine {
 public:
  static Result<std::shared_ptr<Engine>> create(const RuntimeOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  wasm_engine_t* get() const { return engine_; }
  EpochTicker& ticker() { return *ticker_; }
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  Engine() = default;
  wasm_engine_t* engine_ = nullptr;
  std::unique_ptr<EpochTicker> ticker_;
  std::string fingerprint_;
};

// Takes the message out of an error or trap and deletes it.
std::string take_message(wasmtime_error_t* error);

}  // namespace driftwood::wasm
