#include "wasm/module.h"

namespace driftwood::wasm {
namespace {
constexpr size_t kMaxBindings = 4;
}  // namespace

CompiledModule::CompiledModule(std::shared_ptr<Engine> engine, std::string name, wasmtime_module_t* module,
                               ParsedReport report, std::vector<uint8_t> code)
    : engine_(std::move(engine)),
      name_(std::move(name)),
      module_(module),
      report_(std::move(report)),
      code_(std::move(code)) {
  exported_.insert(report_.report.exports.begin(), report_.report.exports.end());
}

CompiledModule::~CompiledModule() {
  bindings_.clear();
  wasmtime_module_delete(module_);
}

bool CompiledModule::exports_function(std::string_view name) const {
  return exported_.find(std::string(name)) != exported_.end();
}

Result<std::shared_ptr<LinkSet>> CompiledModule::bind(std::span<const HostImport> imports) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::shared_ptr<LinkSet>& links : bindings_) {
    if (links->matches(imports)) return links;
  }
  DW_ASSIGN_OR_RETURN(std::shared_ptr<LinkSet> links,
                      LinkSet::create(engine_->get(), module_, name_, imports));
  if (bindings_.size() == kMaxBindings) bindings_.erase(bindings_.begin());
  bindings_.push_back(links);
  return links;
}

}  // namespace driftwood::wasm
