// A guest's state out and in again: globals, and an instance that begins where another stopped.
#include <cstring>

#include "wasm/instance.h"
#include "wasm/restore_check.h"

namespace driftwood::wasm {
namespace {

constexpr char kDropExport[] = "__dw_drop";
constexpr char kGlobalExport[] = "__dw_global_";

uint8_t value_kind(GlobalType type) {
  switch (type) {
    case GlobalType::kI32:
      return WASMTIME_I32;
    case GlobalType::kI64:
      return WASMTIME_I64;
    case GlobalType::kF32:
      return WASMTIME_F32;
    case GlobalType::kF64:
      return WASMTIME_F64;
    case GlobalType::kV128:
      return WASMTIME_V128;
  }
  return WASMTIME_I32;
}

size_t value_bytes(GlobalType type) {
  if (type == GlobalType::kV128) return 16;
  return type == GlobalType::kI32 || type == GlobalType::kF32 ? 4 : 8;
}

// Bits move by memcpy: a float would not keep every NaN on every machine.
GlobalValue to_value(const GlobalDeclaration& global, const wasmtime_val_t& raw) {
  uint64_t words[2] = {0, 0};
  std::memcpy(words, &raw.of, value_bytes(global.type));
  return GlobalValue{global.index, global.type, words[0], words[1]};
}

wasmtime_val_t to_raw(const GlobalValue& value) {
  const uint64_t words[2] = {value.bits, value.high_bits};
  wasmtime_val_t raw;
  std::memset(&raw, 0, sizeof raw);
  raw.kind = value_kind(value.type);
  std::memcpy(&raw.of, words, value_bytes(value.type));
  return raw;
}

}  // namespace

Result<std::unique_ptr<Instance>> GuestInstance::restore(std::shared_ptr<CompiledModule> module,
                                                         std::span<const HostImport> imports,
                                                         InstanceOptions options, const FrozenMemory& memory,
                                                         std::span<const GlobalValue> globals) {
  std::unique_ptr<GuestInstance> instance(new GuestInstance(std::move(module), std::move(options)));
  DW_RETURN_IF_ERROR(instance->start_from(imports, memory, globals));
  return std::unique_ptr<Instance>(std::move(instance));
}

Status GuestInstance::start_from(std::span<const HostImport> imports, const FrozenMemory& memory,
                                 std::span<const GlobalValue> globals) {
  const std::string who = "actor '" + options_.actor_name + "'";
  const ParsedReport& parsed = module_->parsed();
  Status fits = check_no_blockers(module_->name(), parsed.report);
  if (fits.is_ok()) fits = check_memory(module_->name(), parsed, options_.max_memory_bytes, memory);
  if (fits.is_ok()) fits = check_globals(module_->name(), parsed.globals, globals);
  if (!fits.is_ok()) return fits.with_context(who);
  DW_RETURN_IF_ERROR(prepare(imports));
  DW_RETURN_IF_ERROR(instantiate(&memory.image));
  adopt_image(memory.image);
  place_patches(memory.patches);
  DW_RETURN_IF_ERROR(set_globals(globals));
  DW_ASSIGN_OR_RETURN(const int drop, resolve_any(kDropExport));
  return call_resolved(drop, {}, {});
}

Status GuestInstance::can_freeze() const {
  DW_RETURN_IF_ERROR(usable());
  const std::string who = "actor '" + options_.actor_name + "'";
  const Status module = check_no_blockers(module_->name(), module_->report());
  if (!module.is_ok()) return module.with_context(who);
  std::string message;
  for (const std::string& file : open_files()) {
    message += (message.empty() ? "" : ", ") + ("the file '" + file + "' is open");
  }
  for (const std::string& descriptor : wasi_->changed_descriptors()) {
    message += (message.empty() ? "" : ", ") + (descriptor + " is not as it was at the start");
  }
  if (message.empty()) return Status::ok();
  return failed_precondition(who + " cannot be frozen now: " + message);
}

Result<wasmtime_global_t> GuestInstance::exported_global(uint32_t index) {
  const std::string name = kGlobalExport + std::to_string(index);
  wasmtime_extern_t item;
  if (!wasmtime_instance_export_get(context_, &instance_, name.data(), name.size(), &item) ||
      item.kind != WASMTIME_EXTERN_GLOBAL) {
    return internal_error("the rewritten module '" + module_->name() + "' has no export " + name);
  }
  return item.of.global;
}

Result<std::vector<GlobalValue>> GuestInstance::globals() {
  DW_RETURN_IF_ERROR(usable());
  if (module_->parsed().has_reference_globals) {
    return unimplemented("actor '" + options_.actor_name + "': module '" + module_->name() +
                         "' has mutable globals that hold references: they have no value to save");
  }
  std::vector<GlobalValue> values;
  values.reserve(module_->parsed().globals.size());
  for (const GlobalDeclaration& global : module_->parsed().globals) {
    DW_ASSIGN_OR_RETURN(const wasmtime_global_t found, exported_global(global.index));
    wasmtime_val_t raw;
    wasmtime_global_get(context_, &found, &raw);
    DW_CHECK(raw.kind == value_kind(global.type), "a global is not of the type that the report tells");
    values.push_back(to_value(global, raw));
  }
  return values;
}

Status GuestInstance::set_globals(std::span<const GlobalValue> values) {
  DW_RETURN_IF_ERROR(usable());
  const Status fits = check_globals(module_->name(), module_->parsed().globals, values);
  if (!fits.is_ok()) return fits.with_context("actor '" + options_.actor_name + "'");
  for (const GlobalValue& value : values) {
    DW_ASSIGN_OR_RETURN(const wasmtime_global_t found, exported_global(value.index));
    const wasmtime_val_t raw = to_raw(value);
    wasmtime_error_t* error = wasmtime_global_set(context_, &found, &raw);
    if (error != nullptr) {
      return internal_error("setting global " + std::to_string(value.index) + ": " + take_message(error));
    }
  }
  return Status::ok();
}

}  // namespace driftwood::wasm
