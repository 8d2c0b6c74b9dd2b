#include "kv/block_table.h"

namespace driftwood::kv {

BlockTable::BlockTable(int64_t max_tokens) : max_blocks_(blocks_for(max_tokens)) {
  ids_.reserve(static_cast<size_t>(max_blocks_));
}

BlockTable::~BlockTable() { DW_CHECK(ids_.empty(), "a block table went without giving its blocks back"); }

Status BlockTable::prepare(BlockPool* pool, int64_t length, int64_t new_length) {
  DW_CHECK(length >= 0 && length <= new_length, "lengths in order");
  DW_CHECK(blocks_for(length) <= size() && blocks_for(new_length) <= max_blocks_, "lengths within the table");
  if (length == new_length) return Status::ok();
  const int64_t first = length / kKvBlockTokens;
  const int64_t end = blocks_for(new_length);

  int64_t fresh = 0;
  for (int64_t b = first; b < end; ++b) {
    fresh += b >= size() || pool->references(ids_[static_cast<size_t>(b)]) > 1;
  }
  DW_RETURN_IF_ERROR(pool->reserve(fresh));  // nothing below can fail any more

  for (int64_t b = first; b < end; ++b) {
    const bool missing = b >= size();
    if (!missing && pool->references(ids_[static_cast<size_t>(b)]) == 1) continue;
    const int32_t id = *pool->allocate();
    if (missing) {
      ids_.push_back(id);
      continue;
    }
    int32_t& shared = ids_[static_cast<size_t>(b)];
    if (b * kKvBlockTokens < length) pool->copy(shared, id);
    pool->release(shared);
    shared = id;
  }
  return Status::ok();
}

void BlockTable::fork_from(BlockPool* pool, const BlockTable& parent, int64_t length) {
  DW_CHECK(ids_.empty(), "only an empty table can become a fork");
  const int64_t count = blocks_for(length);
  DW_CHECK(count <= parent.size() && count <= max_blocks_, "a fork is no longer than its parent");
  for (int64_t b = 0; b < count; ++b) {
    const int32_t id = parent.ids_[static_cast<size_t>(b)];
    pool->retain(id);
    ids_.push_back(id);
  }
}

void BlockTable::truncate(BlockPool* pool, int64_t length) {
  const int64_t keep = blocks_for(length);
  if (size() <= keep) return;
  pool->release(std::span<const int32_t>(ids_).subspan(static_cast<size_t>(keep)));
  ids_.resize(static_cast<size_t>(keep));
}

}  // namespace driftwood::kv
