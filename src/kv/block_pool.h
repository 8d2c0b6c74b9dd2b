// BlockPool: the KV blocks of one group on one region, with reference counts.
//
// Blocks are numbered from 0 at the region's base; the lowest free number is always given out, so that block
// ids depend on the order of calls only. Address space for the whole budget is reserved at once; memory is
// committed as the highest block in use grows, in steps, and never moves. A fresh block's bytes are whatever
// its last owner left: nothing may read a token that was not stored (zero_past() cleans a block that is about
// to be saved).
//
// Blocks from files: load_files() maps a saved block at its place in the pool, copy-on-write, instead of
// reading it: nothing is read until it is touched, and the file never changes. Whether mapping is allowed is
// fixed when the pool is made; it is not where a device has registered the pool (DESIGN 4.1). A mapped block
// whose last reference goes gets fresh memory, so that no file stays mapped. Neighbours are mapped and
// unmapped in one call. Padding of blocks is zero; that of a mapped one is the file's.
//
// Threads: the owner's lock covers it (bytes of blocks may be used, and load() and load_files() called,
// without the lock by whoever holds the only reference). A thread of the pool reads blocks ahead that are on
// the disk only. Ownership: owns the region. Errors: resource_exhausted naming the budget, state unchanged.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "kv/kv_layout.h"
#include "region/read_ahead.h"
#include "region/region.h"

namespace driftwood::kv {

// How saved blocks come from files.
enum class FileUse : uint8_t { kMap, kRead };

class BlockPool {
 public:
  // budget_bytes is rounded down to whole blocks; invalid_argument if it holds none.
  static Result<std::unique_ptr<BlockPool>> create(const KvLayout& layout, int64_t budget_bytes,
                                                   FileUse file_use = FileUse::kMap);

  const KvLayout& layout() const { return layout_; }
  uint8_t* base() const { return region_->base(); }
  uint8_t* block(int32_t id) const { return base() + id * layout_.block_bytes(); }

  int64_t capacity() const { return static_cast<int64_t>(references_.size()); }
  int64_t in_use() const { return in_use_; }
  int64_t available() const { return capacity() - in_use_; }
  int64_t mapped() const { return mapped_count_.load(std::memory_order_relaxed); }  // blocks on files

  // Makes sure that the next `count` allocations succeed (memory committed). resource_exhausted otherwise.
  Status reserve(int64_t count);
  // The lowest free block, with one reference. resource_exhausted if there is none.
  Result<int32_t> allocate();
  void retain(int32_t id);
  void release(int32_t id) { release(std::span<const int32_t>(&id, 1)); }
  void release(std::span<const int32_t> ids);
  int32_t references(int32_t id) const { return references_[static_cast<size_t>(id)]; }

  // Copies a whole block; `to` must be unshared.
  void copy(int32_t from, int32_t to);
  // Fills an unshared block with saved bytes, block_bytes of them; what is past the first `tokens` tokens
  // becomes zero whatever was saved. Together with load_files() the door through which saved KV enters.
  void load(int32_t id, std::span<const uint8_t> bytes, int64_t tokens);
  // block_files.cc. Fills unshared blocks, in order, with images of block_bytes each (fd -1: zeros) that hold
  // `tokens` tokens together. Descriptors may be closed afterwards, files must be immutable from then on.
  // Read blocks become zero past the tokens; in a mapped last block stays what the file has there, as in any
  // block that was used before. Errors: what check_files() reports, resource_exhausted where the system's
  // mappings are used up, the system's reading error; then the blocks hold anything and are to be released.
  Status load_files(std::span<const int32_t> ids, std::span<const region::FileImage> images, int64_t tokens);
  // Without changing anything, naming the block's number in `images`: invalid_argument for a bad length, a
  // bad offset or what is no regular file; data_loss for a file that ends before its block does.
  Status check_files(std::span<const region::FileImage> images) const;
  // Zeroes everything past the first `tokens` tokens of a block.
  void zero_past(int32_t id, int64_t tokens);

 private:
  BlockPool(const KvLayout& layout, std::unique_ptr<region::Region> region, int64_t capacity,
            FileUse file_use)
      : layout_(layout),
        file_use_(file_use),
        region_(std::move(region)),
        references_(static_cast<size_t>(capacity), 0),
        mapped_(static_cast<size_t>(capacity), 0) {}

  // The lowest free block at or after `from`; capacity() if there is none.
  int64_t next_free(int64_t from) const;
  Status exhausted(int64_t wanted) const;
  void set_mapped(int32_t id, bool mapped);
  // Blocks first, first + 1, ... from one stretch of a file, or zeros.
  Status map_run(int32_t first, int64_t count, const region::FileImage& run);
  Status read_block(int32_t id, const region::FileImage& image, int64_t tokens);
  // Fresh memory for blocks without an owner; sorts `ids`.
  void unmap(std::vector<int32_t>* ids);

  KvLayout layout_;
  FileUse file_use_;
  std::unique_ptr<region::Region> region_;
  std::vector<int32_t> references_;
  std::vector<uint8_t> mapped_;  // a block's belongs to whoever has its only reference
  std::atomic<int64_t> mapped_count_{0};
  int64_t lowest_free_ = 0;  // no block below it is free
  int64_t in_use_ = 0;
  region::ReadAhead read_ahead_;  // goes before the region does
};

}  // namespace driftwood::kv
