// CompiledModule: a rewritten and compiled module, its report, and the host bindings made for it so far.
//
// Immutable but for the list of bindings, which a mutex guards. Shared by its instances.
#pragma once

#include <wasmtime.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "wasm/engine.h"
#include "wasm/link_set.h"
#include "wasm/module_report.h"
#include "wasm/runtime.h"

namespace driftwood::wasm {

class CompiledModule final : public Module {
 public:
  // Takes ownership of `module`.
  CompiledModule(std::shared_ptr<Engine> engine, std::string name, wasmtime_module_t* module,
                 ParsedReport report, std::vector<uint8_t> code);
  ~CompiledModule() override;

  const ModuleReport& report() const override { return report_.report; }
  const std::string& name() const override { return name_; }
  std::span<const uint8_t> code() const override { return code_; }

  const ParsedReport& parsed() const { return report_; }
  bool exports_function(std::string_view name) const;
  const std::shared_ptr<Engine>& engine() const { return engine_; }

  // The binding to these host functions; made on first use and kept (a few at most, the oldest goes first).
  Result<std::shared_ptr<LinkSet>> bind(std::span<const HostImport> imports);

 private:
  std::shared_ptr<Engine> engine_;
  const std::string name_;
  wasmtime_module_t* module_;
  const ParsedReport report_;
  const std::vector<uint8_t> code_;
  std::unordered_set<std::string> exported_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<LinkSet>> bindings_;  // guarded by mutex_
};

}  // namespace driftwood::wasm
