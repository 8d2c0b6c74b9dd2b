#include "wasm/link_set.h"

#include <algorithm>
#include <string_view>

#include "wasm/engine.h"
#include "wasm/instance.h"
#include "wasm/signature.h"
#include "wasm/wasi/wasi_functions.h"

namespace driftwood::wasm {
namespace {

constexpr size_t kMaxProblemsNamed = 8;

std::string_view view(const wasm_name_t* name) { return {name->data, name->size}; }

const char* kind_text(wasm_externkind_t kind) {
  switch (kind) {
    case WASM_EXTERN_GLOBAL: return "global";
    case WASM_EXTERN_TABLE: return "table";
    case WASM_EXTERN_MEMORY: return "memory";
    default: return "item";
  }
}

const HostImport* find(std::span<const HostImport> imports, std::string_view module, std::string_view name) {
  for (const HostImport& import : imports) {
    if (import.name == name && import.module == module) return &import;
  }
  return nullptr;
}

bool same_import(const HostImport& a, const HostImport& b) {
  return a.function == b.function && a.name == b.name && a.module == b.module && a.signature == b.signature;
}

// Names what is wrong with one import, or finds its host function.
std::string check_import(const wasm_importtype_t* import, std::span<const HostImport> host, const HostImport** out) {
  const std::string_view module = view(wasm_importtype_module(import));
  const std::string_view name = view(wasm_importtype_name(import));
  const std::string full = std::string(module) + "." + std::string(name);
  const wasm_externtype_t* type = wasm_importtype_type(import);
  const wasm_externkind_t kind = wasm_externtype_kind(type);
  if (kind != WASM_EXTERN_FUNC) {
    return std::string(kind_text(kind)) + " " + full + " (only functions can be imported: define it in the module)";
  }
  const wasm_functype_t* function_type = wasm_externtype_as_functype_const(type);
  const std::string wanted = function_type_text(function_type);
  *out = find(host, module, name);
  if (*out == nullptr) *out = find(wasi_functions(), module, name);
  if (*out == nullptr) return "function " + full + " " + wanted + " (this host does not offer it)";
  const std::optional<Signature> signature = signature_of(function_type);
  if (!signature || *signature != (*out)->signature) {
    *out = nullptr;
    const HostImport* offered = find(host, module, name);
    if (offered == nullptr) offered = find(wasi_functions(), module, name);
    return "function " + full + " as " + wanted + " (this host offers it as " + signature_text(offered->signature) +
           ")";
  }
  return "";
}

}  // namespace

BoundImport::BoundImport(const HostImport& source)
    : function(source.function),
      param_count(static_cast<uint8_t>(source.signature.params.size())),
      result_count(static_cast<uint8_t>(source.signature.results.size())),
      import(source) {
  std::copy(source.signature.params.begin(), source.signature.params.end(), params.begin());
  std::copy(source.signature.results.begin(), source.signature.results.end(), results.begin());
}

Result<std::shared_ptr<LinkSet>> LinkSet::create(wasm_engine_t* engine, const wasmtime_module_t* module,
                                                 const std::string& module_name,
                                                 std::span<const HostImport> imports) {
  for (const HostImport& import : imports) {
    DW_CHECK(import.function != nullptr, "a host import without a function");
    DW_CHECK(import.signature.params.size() <= kMaxParams && import.signature.results.size() <= kMaxResults,
             "a host import with too many parameters or results");
  }
  std::shared_ptr<LinkSet> links(new LinkSet());
  links->imports_.assign(imports.begin(), imports.end());
  links->linker_ = wasmtime_linker_new(engine);
  DW_RETURN_IF_ERROR(links->bind_all(module, module_name));
  wasmtime_error_t* error = wasmtime_linker_instantiate_pre(links->linker_, module, &links->pre_);
  if (error != nullptr) return invalid_argument("module '" + module_name + "': " + take_message(error));
  return links;
}

LinkSet::~LinkSet() {
  if (pre_ != nullptr) wasmtime_instance_pre_delete(pre_);
  if (linker_ != nullptr) wasmtime_linker_delete(linker_);
}

Status LinkSet::bind_all(const wasmtime_module_t* module, const std::string& module_name) {
  wasm_importtype_vec_t wanted;
  wasmtime_module_imports(module, &wanted);
  std::vector<std::string> problems;
  bool mismatch = false;
  for (size_t i = 0; i < wanted.size; ++i) {
    const HostImport* host = nullptr;
    std::string problem = check_import(wanted.data[i], imports_, &host);
    if (!problem.empty()) {
      mismatch |= problem.find("offers it as") != std::string::npos;
      problems.push_back(std::move(problem));
      continue;
    }
    const bool known = [&] {
      for (const BoundImport& b : bound_) {
        if (b.import.name == host->name && b.import.module == host->module) return true;
      }
      return false;
    }();
    if (!known) bound_.emplace_back(*host);
  }
  wasm_importtype_vec_delete(&wanted);
  if (!problems.empty()) {
    std::string message = "module '" + module_name + "' imports ";
    for (size_t i = 0; i < problems.size() && i < kMaxProblemsNamed; ++i) message += (i ? "; " : "") + problems[i];
    if (problems.size() > kMaxProblemsNamed) {
      message += "; and " + std::to_string(problems.size() - kMaxProblemsNamed) + " more";
    }
    return mismatch ? invalid_argument(std::move(message)) : not_found(std::move(message));
  }
  for (const BoundImport& bound : bound_) DW_RETURN_IF_ERROR(define(linker_, bound));
  return Status::ok();
}

Status LinkSet::define(wasmtime_linker_t* linker, const BoundImport& bound) {
  const std::string& module = bound.import.module;
  const std::string& name = bound.import.name;
  wasm_functype_t* type = new_function_type(bound.import.signature);
  wasmtime_error_t* error =
      wasmtime_linker_define_func_unchecked(linker, module.data(), module.size(), name.data(), name.size(), type,
                                            call_host_function, const_cast<BoundImport*>(&bound), nullptr);
  wasm_functype_delete(type);
  if (error != nullptr) return internal_error("linking " + module + "." + name + ": " + take_message(error));
  return Status::ok();
}

bool LinkSet::matches(std::span<const HostImport> imports) const {
  if (imports.size() != imports_.size()) return false;
  for (size_t i = 0; i < imports.size(); ++i) {
    if (!same_import(imports[i], imports_[i])) return false;
  }
  return true;
}

}  // namespace driftwood::wasm
