// BlockPool: the KV blocks of one group on one region, with reference counts.
//
// Blocks are numbered from 0 at the region's base; the lowest free number is always given out, so that block
// ids depend on the order of calls only. Address space for the whole budget is reserved at once; memory is
// committed as the highest block in use grows, in steps, and never moves. A fresh block's bytes are whatever
// its last owner left: nothing may read a token that was not stored (zero_past() cleans a block that is about
// to be saved).
//
// Threads: none of its own; the owner's lock covers it (bytes of blocks may be used without the lock by
// whoever holds a reference). Ownership: owns the region. Errors: resource_exhausted naming the budget, state
// unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "kv/kv_layout.h"
#include "region/region.h"

namespace driftwood::kv {

class BlockPool {
 public:
  // budget_bytes is rounded down to whole blocks; invalid_argument if it holds none.
  static Result<std::unique_ptr<BlockPool>> create(const KvLayout& layout, int64_t budget_bytes);

  const KvLayout& layout() const { return layout_; }
  uint8_t* base() const { return region_->base(); }
  uint8_t* block(int32_t id) const { return base() + id * layout_.block_bytes(); }

  int64_t capacity() const { return static_cast<int64_t>(references_.size()); }
  int64_t in_use() const { return in_use_; }
  int64_t available() const { return capacity() - in_use_; }

  // Makes sure that the next `count` allocations succeed (memory committed). resource_exhausted otherwise.
  Status reserve(int64_t count);
  // The lowest free block, with one reference. resource_exhausted if there is none.
  Result<int32_t> allocate();
  void retain(int32_t id);
  void release(int32_t id);
  int32_t references(int32_t id) const { return references_[static_cast<size_t>(id)]; }

  // Copies a whole block; `to` must be unshared.
  void copy(int32_t from, int32_t to);
  // Fills an unshared block with saved bytes, block_bytes of them; what is past the first `tokens` tokens
  // becomes zero whatever was saved. The one door through which saved KV enters the pool: a pool that maps
  // pages of a file instead of copying them does it here.
  void load(int32_t id, std::span<const uint8_t> bytes, int64_t tokens);
  // Zeroes everything past the first `tokens` tokens of a block.
  void zero_past(int32_t id, int64_t tokens);

 private:
  BlockPool(const KvLayout& layout, std::unique_ptr<region::Region> region, int64_t capacity)
      : layout_(layout), region_(std::move(region)), references_(static_cast<size_t>(capacity), 0) {}

  // The lowest free block at or after `from`; capacity() if there is none.
  int64_t next_free(int64_t from) const;
  Status exhausted(int64_t wanted) const;

  KvLayout layout_;
  std::unique_ptr<region::Region> region_;
  std::vector<int32_t> references_;
  int64_t lowest_free_ = 0;  // no block below it is free
  int64_t in_use_ = 0;
};

}  // namespace driftwood::kv
