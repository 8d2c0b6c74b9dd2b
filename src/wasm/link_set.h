// LinkSet: one module bound to one set of host functions, made once and instantiated many times.
//
// It holds Wasmtime's pre-instantiation (imports resolved and type-checked) and the closures of the host
// functions. Instances share it and keep it alive. Immutable and thread-safe once made.
#pragma once

#include <wasmtime.h>

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "wasm/runtime.h"
#include "wasm/signature.h"

namespace driftwood::wasm {

class Engine;

// What a compiled call of the guest lands on. The signature stands twice: as the hot path reads it, and whole.
struct BoundImport {
  explicit BoundImport(const HostImport& import);

  HostFunction function;
  uint8_t param_count;
  uint8_t result_count;
  std::array<ValueType, kMaxParams> params{};
  std::array<ValueType, kMaxResults> results{};
  HostImport import;
};

class LinkSet {
 public:
  // `imports` first, then WASI. Errors name every import that is missing or has another signature.
  static Result<std::shared_ptr<LinkSet>> create(wasm_engine_t* engine, const wasmtime_module_t* module,
                                                 const std::string& module_name,
                                                 std::span<const HostImport> imports);
  ~LinkSet();
  LinkSet(const LinkSet&) = delete;
  LinkSet& operator=(const LinkSet&) = delete;

  // True if it was made from the same host functions.
  bool matches(std::span<const HostImport> imports) const;
  const wasmtime_instance_pre_t* pre() const { return pre_; }

 private:
  LinkSet() = default;
  Status bind_all(const wasmtime_module_t* module, const std::string& module_name);
  Status define(wasmtime_linker_t* linker, const BoundImport& bound);

  std::vector<HostImport> imports_;  // as given
  std::deque<BoundImport> bound_;    // addresses are the closures' environments
  wasmtime_linker_t* linker_ = nullptr;
  wasmtime_instance_pre_t* pre_ = nullptr;
};

}  // namespace driftwood::wasm
