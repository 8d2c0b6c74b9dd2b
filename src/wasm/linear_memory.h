// LinearMemory: a guest's memory as Wasmtime's memory creator makes it, on a Region (DESIGN 4.1).
//
// Wasmtime owns each LinearMemory through the store and deletes it with the store. Which instance a new
// memory belongs to is known by thread: the instantiating thread opens a MemoryClaim first and finds the
// memory in it.
#pragma once

#include <wasmtime.h>

#include <memory>

#include "region/region.h"
#include "wasm/frozen_state.h"

namespace driftwood::wasm {

struct LinearMemory {
  std::unique_ptr<region::Region> region;  // committed_bytes() is the guest's memory size
};

// Collects the memory made on this thread while it is open, and says what it begins with. Not nested.
class MemoryClaim {
 public:
  // `image`: what the memory adopts, its size included; null: zeroes of the module's minimum.
  explicit MemoryClaim(const MemoryImage* image);
  ~MemoryClaim();
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;

  // Null if the module has no memory. Owned by the store.
  LinearMemory* memory() const { return memory_; }
  void set_memory(LinearMemory* memory);
  const MemoryImage* image() const { return image_; }
  // Why no memory could be made; ok if that was not tried or went well.
  const Status& status() const { return status_; }
  void set_status(Status status) { status_ = std::move(status); }

 private:
  const MemoryImage* image_;
  LinearMemory* memory_ = nullptr;
  Status status_;
};

// The creator for wasmtime_config_host_memory_creator_set. Stateless.
wasmtime_memory_creator_t memory_creator();

}  // namespace driftwood::wasm
