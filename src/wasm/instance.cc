#include "wasm/instance.h"

#include <utility>

#include "wasm/signature.h"
#include "wasm/trap_message.h"

namespace driftwood::wasm {
namespace {

constexpr char kInitExport[] = "__dw_init";
constexpr char kMemoryExport[] = "__dw_memory";
constexpr char kReactorStart[] = "_initialize";
constexpr int64_t kMaxTables = 16;

}  // namespace

GuestInstance::GuestInstance(std::shared_ptr<CompiledModule> module, InstanceOptions options)
    : module_(std::move(module)), options_(std::move(options)), host_call_(this, options_.user) {
  if (options_.call_deadline.count() > 0) {
    deadline_ticks_ = module_->engine()->ticker().ticks_for(options_.call_deadline);
  }
}

GuestInstance::~GuestInstance() {
  if (store_ != nullptr) wasmtime_store_delete(store_);
}

Result<std::unique_ptr<Instance>> GuestInstance::create(std::shared_ptr<CompiledModule> module,
                                                        std::span<const HostImport> imports,
                                                        InstanceOptions options) {
  std::unique_ptr<GuestInstance> instance(new GuestInstance(std::move(module), std::move(options)));
  DW_RETURN_IF_ERROR(instance->start(imports));
  return std::unique_ptr<Instance>(std::move(instance));
}

Status GuestInstance::start(std::span<const HostImport> imports) {
  const std::string who = "actor '" + options_.actor_name + "'";
  const uint64_t wanted = module_->parsed().memory_min_pages * kWasmPageBytes;
  if (wanted > options_.max_memory_bytes) {
    return resource_exhausted(who + ": module '" + module_->name() + "' needs " + std::to_string(wanted) +
                              " bytes of memory to start, its limit is " +
                              std::to_string(options_.max_memory_bytes));
  }
  DW_RETURN_IF_ERROR(prepare(imports));
  DW_RETURN_IF_ERROR(instantiate(nullptr));
  return run_start_functions();
}

Status GuestInstance::prepare(std::span<const HostImport> imports) {
  const std::string who = "actor '" + options_.actor_name + "'";
  auto links = module_->bind(imports);
  if (!links.is_ok()) return links.status().with_context(who);
  links_ = std::move(*links);
  auto wasi = WasiState::create(options_.wasi);
  if (!wasi.is_ok()) return wasi.status().with_context(who);
  wasi_ = std::move(*wasi);
  make_store();
  return Status::ok();
}

void GuestInstance::make_store() {
  store_ = wasmtime_store_new(module_->engine()->get(), this, nullptr);
  context_ = wasmtime_store_context(store_);
  const uint64_t memory = std::min<uint64_t>(options_.max_memory_bytes, INT64_MAX);
  wasmtime_store_limiter(store_, static_cast<int64_t>(memory), options_.max_table_elements, 1, kMaxTables, 1);
  wasmtime_store_epoch_deadline_callback(store_, on_epoch, this, nullptr);
}

Status GuestInstance::instantiate(const MemoryImage* image) {
  MemoryClaim claim(image);
  arm_deadline();
  wasm_trap_t* trap = nullptr;
  wasmtime_error_t* error = wasmtime_instance_pre_instantiate(links_->pre(), context_, &instance_, &trap);
  if (trap != nullptr) return ended("(instantiation)", true, nullptr, trap);
  if (error != nullptr && image != nullptr && !claim.status().is_ok()) {
    wasmtime_error_delete(error);
    return claim.status().with_context("actor '" + options_.actor_name + "'");
  }
  if (error != nullptr) {
    // Sizes are what can still be refused: imports were checked, and no guest code has run.
    return resource_exhausted("actor '" + options_.actor_name + "': module '" + module_->name() +
                              "' cannot start: " + take_message(error));
  }
  if (claim.memory() != nullptr) {
    region_ = claim.memory()->region.get();
    DW_CHECK(wasmtime_memory_base() == region_->base(), "the guest's memory is not the region");
    return Status::ok();
  }
  DW_ASSIGN_OR_RETURN(empty_region_, region::Region::create(0, 0, 0));
  region_ = empty_region_.get();
  return Status::ok();
}

Status GuestInstance::run_start_functions() {
  DW_ASSIGN_OR_RETURN(const int init, resolve_any(kInitExport));
  DW_RETURN_IF_ERROR(call_resolved(init, {}, {}));
  if (!has_export(kReactorStart)) return Status::ok();
  auto initialize = resolve(kReactorStart, Signature{});
  if (!initialize.is_ok()) return initialize.status();
  return call_resolved(*initialize, {}, {});
}

uint8_t* GuestInstance::wasmtime_memory_base() {
  wasmtime_extern_t item;
  if (!wasmtime_instance_export_get(context_, &instance_, kMemoryExport, sizeof kMemoryExport - 1, &item)) {
    return nullptr;
  }
  if (item.kind != WASMTIME_EXTERN_MEMORY) return nullptr;
  return wasmtime_memory_data(context_, &item.of.memory);
}

bool GuestInstance::has_export(std::string_view export_name) const {
  return module_->exports_function(export_name);
}

Result<int> GuestInstance::resolve_any(std::string_view export_name) {
  if (const auto known = handles_.find(std::string(export_name)); known != handles_.end())
    return known->second;
  const std::string who = "actor '" + options_.actor_name + "': ";
  wasmtime_extern_t item;
  if (!wasmtime_instance_export_get(context_, &instance_, export_name.data(), export_name.size(), &item) ||
      item.kind != WASMTIME_EXTERN_FUNC) {
    return not_found(who + "module '" + module_->name() + "' exports no function '" +
                     std::string(export_name) + "'");
  }
  wasm_functype_t* type = wasmtime_func_type(context_, &item.of.func);
  const std::optional<Signature> signature = signature_of(type);
  const std::string text = function_type_text(type);
  wasm_functype_delete(type);
  if (!signature) {
    return invalid_argument(
        who + "export '" + std::string(export_name) + "' is " + text +
        ": the host calls only i32, i64, f32 and f64, at most 16 parameters and 4 results");
  }
  const int handle = static_cast<int>(resolved_.size());
  resolved_.push_back(ResolvedExport{std::string(export_name), item.of.func, *signature});
  handles_.emplace(export_name, handle);
  return handle;
}

Result<int> GuestInstance::resolve(std::string_view export_name, const Signature& signature) {
  if (!has_export(export_name)) {
    return not_found("actor '" + options_.actor_name + "': module '" + module_->name() +
                     "' exports no function '" + std::string(export_name) + "'");
  }
  DW_ASSIGN_OR_RETURN(const int handle, resolve_any(export_name));
  const Signature& found = resolved_[static_cast<size_t>(handle)].signature;
  if (found == signature) return handle;
  return invalid_argument("actor '" + options_.actor_name + "': export '" + std::string(export_name) +
                          "' is " + signature_text(found) + ", expected " + signature_text(signature));
}

Status GuestInstance::usable() const {
  if (!alive_) return failed_precondition("actor '" + options_.actor_name + "' is dead: " + death_);
  if (in_call_) {
    return failed_precondition("actor '" + options_.actor_name +
                               "' is inside a host call: no call into it now");
  }
  return Status::ok();
}

Result<std::vector<uint64_t>> GuestInstance::call(std::string_view export_name,
                                                  std::span<const uint64_t> args) {
  DW_RETURN_IF_ERROR(usable());
  if (!has_export(export_name)) {
    return not_found("actor '" + options_.actor_name + "': module '" + module_->name() +
                     "' exports no function '" + std::string(export_name) + "'");
  }
  DW_ASSIGN_OR_RETURN(const int handle, resolve_any(export_name));
  std::vector<uint64_t> results(resolved_[static_cast<size_t>(handle)].signature.results.size());
  DW_RETURN_IF_ERROR(call_resolved(handle, args, results));
  return results;
}

Status GuestInstance::call_resolved(int handle, std::span<const uint64_t> args, std::span<uint64_t> results) {
  if (!alive_ || in_call_) [[unlikely]]
    return usable();
  DW_CHECK(handle >= 0 && static_cast<size_t>(handle) < resolved_.size(),
           "a handle that resolve() did not give");
  const ResolvedExport& target = resolved_[static_cast<size_t>(handle)];
  const std::vector<ValueType>& params = target.signature.params;
  const std::vector<ValueType>& types = target.signature.results;
  if (args.size() != params.size() || results.size() != types.size()) [[unlikely]] {
    return invalid_argument("actor '" + options_.actor_name + "': export '" + target.name + "' is " +
                            signature_text(target.signature) + ", called with " +
                            std::to_string(args.size()) + " arguments for " + std::to_string(results.size()) +
                            " results");
  }
  wasmtime_val_raw_t slots[kMaxParams];
  for (size_t i = 0; i < params.size(); ++i) set_slot(&slots[i], params[i], args[i]);
  DW_RETURN_IF_ERROR(enter(target, slots, std::max(params.size(), types.size())));
  for (size_t i = 0; i < types.size(); ++i) results[i] = slot_bits(slots[i], types[i]);
  return Status::ok();
}

}  // namespace driftwood::wasm
