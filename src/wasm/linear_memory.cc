#include "wasm/linear_memory.h"

#include <algorithm>

namespace driftwood::wasm {
namespace {

thread_local MemoryClaim* open_claim = nullptr;

uint8_t* get_memory(void* env, size_t* size_bytes, size_t* capacity_bytes) {
  const auto* memory = static_cast<LinearMemory*>(env);
  *size_bytes = memory->region->committed_bytes();
  *capacity_bytes = memory->region->reserved_bytes();
  return memory->region->base();
}

wasmtime_error_t* grow_memory(void* env, size_t size_bytes) {
  const Status status = static_cast<LinearMemory*>(env)->region->commit(size_bytes);
  return status.is_ok() ? nullptr : wasmtime_error_new(status.message().c_str());
}

void delete_memory(void* env) { delete static_cast<LinearMemory*>(env); }

Result<std::unique_ptr<region::Region>> make_region(const MemoryImage* image, size_t minimum, size_t reserved,
                                                    size_t guard) {
  if (image == nullptr) return region::Region::create(std::max(reserved, minimum), guard, minimum);
  // Wasmtime takes the size that get_memory tells: no memory.grow is needed to get from the minimum to the
  // image.
  const uint64_t memory_bytes = std::max(image->image_bytes(), image->memory_bytes);
  DW_CHECK(memory_bytes >= minimum, "an image below the module's minimum");
  return region::Region::create_on_file(image->pieces, std::max(reserved, minimum), guard, memory_bytes);
}

// Sizes are bytes and multiples of the Wasm page, hence of the OS page. The reservation and the guard are
// what lets compiled code leave out bounds checks: never less than asked for.
wasmtime_error_t* new_memory(void*, const wasm_memorytype_t*, size_t minimum, size_t /*maximum*/,
                             size_t reserved, size_t guard, wasmtime_linear_memory_t* out) {
  if (open_claim == nullptr) return wasmtime_error_new("memory made outside of an instantiation");
  auto region = make_region(open_claim->image(), minimum, reserved, guard);
  if (!region.is_ok()) {
    open_claim->set_status(region.status());
    return wasmtime_error_new(region.status().message().c_str());
  }
  auto* memory = new LinearMemory{std::move(*region)};
  open_claim->set_memory(memory);
  *out = wasmtime_linear_memory_t{memory, get_memory, grow_memory, delete_memory};
  return nullptr;
}

}  // namespace

MemoryClaim::MemoryClaim(const MemoryImage* image) : image_(image) {
  DW_CHECK(open_claim == nullptr, "an instantiation inside an instantiation");
  open_claim = this;
}

MemoryClaim::~MemoryClaim() { open_claim = nullptr; }

void MemoryClaim::set_memory(LinearMemory* memory) {
  DW_CHECK(memory_ == nullptr, "an instance with two memories: multi-memory is off");
  memory_ = memory;
}

wasmtime_memory_creator_t memory_creator() { return wasmtime_memory_creator_t{nullptr, new_memory, nullptr}; }

}  // namespace driftwood::wasm
