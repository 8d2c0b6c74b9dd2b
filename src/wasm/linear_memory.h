// LinearMemory: a guest's memory as Wasmtime's memory creator makes it, on a Region (DESIGN 4.1).
//
// Wasmtime owns each LinearMemory through the store and deletes it with the store. Which instance a new memory
// belongs to is known by thread: the instantiating thread opens a MemoryClaim first and finds the memory in it.
#pragma once

#include <wasmtime.h>

#include <memory>

#include "region/region.h"

namespace driftwood::wasm {

struct LinearMemory {
  std::unique_ptr<region::Region> region;  // committed_bytes() is the guest's memory size
};

// Collects the memory made on this thread while it is open. Not nested.
class MemoryClaim {
 public:
  MemoryClaim();
  ~MemoryClaim();
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;

  // Null if the module has no memory. Owned by the store.
  LinearMemory* memory() const { return memory_; }
  void set_memory(LinearMemory* memory);

 private:
  LinearMemory* memory_ = nullptr;
};

// The creator for wasmtime_config_host_memory_creator_set. Stateless.
wasmtime_memory_creator_t memory_creator();

}  // namespace driftwood::wasm
