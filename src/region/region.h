// Region: page-aligned, mmap-backed memory that guest, CPU and device address by the same pointer (DESIGN 4.1).
//
// A region reserves address space (PROT_NONE), commits it from the front by mprotect, and never moves. It owns
// the mapping; everybody else borrows. Device registrations are undone before it is unmapped. Committed bytes
// are zero until written. Sizes here are bytes and multiples of the OS page; a Wasm page (64 KiB) is not one.
// Threads: one thread at a time grows it; bytes may be used by any thread while the region lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace driftwood::region {

size_t os_page_bytes();

class Region {
 public:
  // Reserves `reserve_bytes` followed by `guard_bytes` that are never accessible; commits `commit_bytes`.
  static Result<std::unique_ptr<Region>> create(size_t reserve_bytes, size_t guard_bytes, size_t commit_bytes);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  uint8_t* base() const { return base_; }
  size_t committed_bytes() const { return committed_; }
  size_t reserved_bytes() const { return reserved_; }

  // Makes the first `bytes` usable; never shrinks, never moves. out_of_range past the reservation.
  Status commit(size_t bytes);

  // True if [offset, offset + length) is committed; overflow-safe.
  bool contains(uint64_t offset, uint64_t length) const {
    return offset <= committed_ && length <= committed_ - offset;
  }

 private:
  Region(uint8_t* base, size_t reserved, size_t guard) : base_(base), reserved_(reserved), guard_(guard) {}
  uint8_t* base_;
  size_t reserved_;
  size_t guard_;
  size_t committed_ = 0;
};

// Resident bytes of this process, from the operating system (figures for proofs and tests).
struct Residency {
  size_t rss_bytes = 0;        // resident set
  size_t anonymous_bytes = 0;  // of it, private anonymous
};
Result<Residency> process_residency();

}  // namespace driftwood::region
