#include "kv/block_pool.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace driftwood::kv {
namespace {

// Memory is committed in steps of this size, so that a decode step rarely meets the system.
constexpr int64_t kCommitStepBytes = int64_t{16} << 20;

}  // namespace

Result<std::unique_ptr<BlockPool>> BlockPool::create(const KvLayout& layout, int64_t budget_bytes,
                                                     FileUse file_use) {
  const int64_t capacity =
      std::min<int64_t>(budget_bytes / layout.block_bytes(), std::numeric_limits<int32_t>::max());
  if (capacity <= 0) {
    return invalid_argument("a KV budget of " + std::to_string(budget_bytes) + " bytes holds no block of " +
                            std::to_string(layout.block_bytes()) + " bytes");
  }
  const auto reserve = static_cast<size_t>(capacity * layout.block_bytes());
  DW_ASSIGN_OR_RETURN(auto region, region::Region::create(reserve, 0, 0));
  return std::unique_ptr<BlockPool>(new BlockPool(layout, std::move(region), capacity, file_use));
}

Status BlockPool::exhausted(int64_t wanted) const {
  return resource_exhausted("the KV budget of " + std::to_string(capacity() * layout_.block_bytes()) +
                            " bytes (" + std::to_string(capacity()) + " blocks of " +
                            std::to_string(kKvBlockTokens) + " tokens) has " + std::to_string(available()) +
                            " blocks left, " + std::to_string(wanted) +
                            " are needed; close sessions or raise the KV budget");
}

int64_t BlockPool::next_free(int64_t from) const {
  while (from < capacity() && references_[static_cast<size_t>(from)] != 0) ++from;
  return from;
}

Status BlockPool::reserve(int64_t count) {
  if (count > available()) return exhausted(count);
  int64_t last = lowest_free_ - 1;
  for (int64_t i = 0; i < count; ++i) last = next_free(last + 1);
  const int64_t needed = (last + 1) * layout_.block_bytes();
  if (needed <= static_cast<int64_t>(region_->committed_bytes())) return Status::ok();
  const int64_t stepped = (needed + kCommitStepBytes - 1) / kCommitStepBytes * kCommitStepBytes;
  const auto limit = static_cast<int64_t>(region_->reserved_bytes());
  return region_->commit(static_cast<size_t>(std::min(stepped, limit))).with_context("KV pool");
}

Result<int32_t> BlockPool::allocate() {
  DW_RETURN_IF_ERROR(reserve(1));
  const int64_t id = next_free(lowest_free_);
  references_[static_cast<size_t>(id)] = 1;
  lowest_free_ = id + 1;
  ++in_use_;
  return static_cast<int32_t>(id);
}

void BlockPool::retain(int32_t id) {
  int32_t& count = references_[static_cast<size_t>(id)];
  DW_CHECK(count > 0, "a free KV block can't be shared");
  ++count;
}

void BlockPool::release(std::span<const int32_t> ids) {
  std::vector<int32_t> on_files;
  for (int32_t id : ids) {
    int32_t& count = references_[static_cast<size_t>(id)];
    DW_CHECK(count > 0, "a KV block was released twice");
    if (--count > 0) continue;
    --in_use_;
    lowest_free_ = std::min<int64_t>(lowest_free_, id);
    if (mapped_[static_cast<size_t>(id)] != 0) on_files.push_back(id);
  }
  unmap(&on_files);
}

void BlockPool::copy(int32_t from, int32_t to) {
  DW_CHECK(references(from) > 0 && references(to) == 1, "a KV block is copied into an unshared one");
  // Without the padding: it is zero already, and a mapped block's is not ours.
  std::memcpy(block(to), block(from), static_cast<size_t>(layout_.token_bytes() * kKvBlockTokens));
}

void BlockPool::load(int32_t id, std::span<const uint8_t> bytes, int64_t tokens) {
  DW_CHECK(references(id) == 1, "saved KV goes into an unshared block");
  DW_CHECK(static_cast<int64_t>(bytes.size()) == layout_.block_bytes(), "a saved block has a block's size");
  std::memcpy(block(id), bytes.data(), bytes.size());
  zero_past(id, tokens);
}

void BlockPool::zero_past(int32_t id, int64_t tokens) { layout_.zero_tokens_from(block(id), tokens); }

}  // namespace driftwood::kv
