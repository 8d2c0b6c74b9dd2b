// BlockTable: which blocks hold a session's tokens, in order; forks share blocks until one of them writes.
//
// Token p lives in blocks[p / 32]. A block with more than one reference is never written: prepare() gives the
// table its own copy first, so a fork costs the table and no KV, and the first owner to append to a shared
// partial block copies that block alone.
//
// Room for the longest session is allocated up front: ids() stays where it is for the life of the table, and
// growing it does not allocate. Threads: as BlockPool. Ownership: holds one reference of each block; clear()
// must be called before the table goes (it has no pool of its own). Errors leave the table as it was.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kv/block_pool.h"

namespace driftwood::kv {

class BlockTable {
 public:
  explicit BlockTable(int64_t max_tokens);
  ~BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  const int32_t* ids() const { return ids_.data(); }
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }

  // Makes tokens [length, new_length) writable: missing blocks are allocated, a shared block that holds any
  // of them and also tokens below `length` is copied, one that holds none below is replaced. All or nothing.
  Status prepare(BlockPool* pool, int64_t length, int64_t new_length);

  // Makes this empty table share every block of `parent` that holds tokens [0, length).
  void fork_from(BlockPool* pool, const BlockTable& parent, int64_t length);

  // Drops blocks past the one that holds token length - 1.
  void truncate(BlockPool* pool, int64_t length);
  void clear(BlockPool* pool) { truncate(pool, 0); }

 private:
  std::vector<int32_t> ids_;
  int64_t max_blocks_;
};

}  // namespace driftwood::kv
