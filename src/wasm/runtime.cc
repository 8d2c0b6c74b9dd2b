#include "wasm/runtime.h"

#include <dw_bridge.h>

#include "os/mapped_file.h"
#include "wasm/engine.h"
#include "wasm/instance.h"
#include "wasm/module.h"
#include "wasm/module_cache.h"

namespace driftwood::wasm {
namespace {

// A buffer of the bridge, freed with the scope.
struct BridgeBuffer {
  dwb_buf buf{};
  BridgeBuffer() = default;
  BridgeBuffer(const BridgeBuffer&) = delete;
  BridgeBuffer& operator=(const BridgeBuffer&) = delete;
  ~BridgeBuffer() { dwb_buf_free(&buf); }
  std::string_view text() const { return {reinterpret_cast<const char*>(buf.data), buf.len}; }
  std::span<const uint8_t> bytes() const { return {buf.data, buf.len}; }
};

// The text format begins with a parenthesis or a comment, the binary one with a NUL.
bool looks_like_text(std::span<const uint8_t> bytes) {
  for (const uint8_t byte : bytes) {
    if (byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r') continue;
    return byte == '(' || byte == ';';
  }
  return false;
}

class WasmtimeRuntime final : public Runtime {
 public:
  WasmtimeRuntime(std::shared_ptr<Engine> engine, ModuleCache cache)
      : engine_(std::move(engine)), cache_(std::move(cache)) {}

  Result<std::shared_ptr<Module>> load(std::string name, std::span<const uint8_t> bytes) override;
  Result<std::shared_ptr<Module>> load_file(const std::string& path) override;
  Result<std::unique_ptr<Instance>> instantiate(std::shared_ptr<Module> module,
                                                std::span<const HostImport> imports,
                                                InstanceOptions options) override;
  Result<std::unique_ptr<Instance>> restore(std::shared_ptr<Module> module,
                                            std::span<const HostImport> imports, InstanceOptions options,
                                            const FrozenMemory& memory,
                                            std::span<const GlobalValue> globals) override;

 private:
  std::shared_ptr<CompiledModule> own(std::shared_ptr<Module> module) const;
  Result<std::shared_ptr<Module>> load_binary(std::string name, std::span<const uint8_t> bytes);
  Result<wasmtime_module_t*> compile(const std::string& name, std::span<const uint8_t> bytes);

  std::shared_ptr<Engine> engine_;
  ModuleCache cache_;
};

Result<std::shared_ptr<Module>> WasmtimeRuntime::load(std::string name, std::span<const uint8_t> bytes) {
  if (bytes.size() > kMaxModuleBytes) {
    return resource_exhausted("module '" + name + "' has " + std::to_string(bytes.size()) +
                              " bytes, the limit is " + std::to_string(kMaxModuleBytes));
  }
  if (!looks_like_text(bytes)) return load_binary(std::move(name), bytes);
  wasm_byte_vec_t binary;
  wasmtime_error_t* error =
      wasmtime_wat2wasm(reinterpret_cast<const char*>(bytes.data()), bytes.size(), &binary);
  if (error != nullptr) return invalid_argument("module '" + name + "': " + take_message(error));
  auto module = load_binary(std::move(name), {reinterpret_cast<const uint8_t*>(binary.data), binary.size});
  wasm_byte_vec_delete(&binary);
  return module;
}

Result<std::shared_ptr<Module>> WasmtimeRuntime::load_binary(std::string name,
                                                             std::span<const uint8_t> bytes) {
  BridgeBuffer rewritten;
  BridgeBuffer report_json;
  BridgeBuffer problem;
  const dwb_status status =
      dwb_module_prepare(bytes.data(), bytes.size(), &rewritten.buf, &report_json.buf, &problem.buf);
  if (status != DWB_OK) {
    std::string message = "module '" + name + "': " + std::string(problem.text());
    if (status == DWB_UNSUPPORTED) return unimplemented(std::move(message));
    return status == DWB_INVALID_ARGUMENT ? invalid_argument(std::move(message))
                                          : internal_error(std::move(message));
  }
  DW_ASSIGN_OR_RETURN(ParsedReport report, parse_module_report(report_json.text()));
  const ModuleCache::Key key = cache_.key(rewritten.bytes());
  wasmtime_module_t* module = cache_.load(engine_->get(), key);
  report.report.from_cache = module != nullptr;
  if (module == nullptr) {
    DW_ASSIGN_OR_RETURN(module, compile(name, rewritten.bytes()));
    cache_.save(key, module);
  }
  return std::shared_ptr<Module>(std::make_shared<CompiledModule>(
      engine_, std::move(name), module, std::move(report), std::vector<uint8_t>(bytes.begin(), bytes.end())));
}

Result<wasmtime_module_t*> WasmtimeRuntime::compile(const std::string& name, std::span<const uint8_t> bytes) {
  wasmtime_module_t* module = nullptr;
  wasmtime_error_t* error = wasmtime_module_new(engine_->get(), bytes.data(), bytes.size(), &module);
  if (error != nullptr) return invalid_argument("module '" + name + "': " + take_message(error));
  return module;
}

Result<std::shared_ptr<Module>> WasmtimeRuntime::load_file(const std::string& path) {
  DW_ASSIGN_OR_RETURN(const std::string bytes, os::read_text_file(path, kMaxModuleBytes));
  const size_t slash = path.find_last_of('/');
  return load(slash == std::string::npos ? path : path.substr(slash + 1),
              {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

Result<std::unique_ptr<Instance>> WasmtimeRuntime::instantiate(std::shared_ptr<Module> module,
                                                               std::span<const HostImport> imports,
                                                               InstanceOptions options) {
  return GuestInstance::create(own(std::move(module)), imports, std::move(options));
}

Result<std::unique_ptr<Instance>> WasmtimeRuntime::restore(std::shared_ptr<Module> module,
                                                           std::span<const HostImport> imports,
                                                           InstanceOptions options,
                                                           const FrozenMemory& memory,
                                                           std::span<const GlobalValue> globals) {
  return GuestInstance::restore(own(std::move(module)), imports, std::move(options), memory, globals);
}

std::shared_ptr<CompiledModule> WasmtimeRuntime::own(std::shared_ptr<Module> module) const {
  auto compiled = std::dynamic_pointer_cast<CompiledModule>(std::move(module));
  DW_CHECK(compiled != nullptr && compiled->engine() == engine_, "a module of another runtime");
  return compiled;
}

}  // namespace

Result<std::shared_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  DW_ASSIGN_OR_RETURN(std::shared_ptr<Engine> engine, Engine::create(options));
  ModuleCache cache(options.cache_dir, engine->fingerprint());
  return std::shared_ptr<Runtime>(std::make_shared<WasmtimeRuntime>(std::move(engine), std::move(cache)));
}

}  // namespace driftwood::wasm
