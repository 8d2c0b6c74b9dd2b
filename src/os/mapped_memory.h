// MappedMemory: pages that this process owns for itself, anonymous or a written file's; unmapped with the
// object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace driftwood::os {

class MappedMemory {
 public:
  MappedMemory() = default;
  // Takes over a mapping made elsewhere.
  MappedMemory(uint8_t* base, size_t size_bytes) : base_(base), size_(size_bytes) {}
  // Zero-filled pages, huge ones where the system gives them (streaming weights spares it TLB misses).
  static Result<MappedMemory> allocate(size_t size_bytes);
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept;

  uint8_t* data() const { return base_; }
  size_t size_bytes() const { return size_; }

  // Later writes are faults of ours and end the process.
  Status make_read_only();

 private:
  uint8_t* base_ = nullptr;
  size_t size_ = 0;
};

}  // namespace driftwood::os
