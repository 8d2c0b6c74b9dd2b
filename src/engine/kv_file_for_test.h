// A frozen session's KV in a file, as a store would have it: for tests and benches.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "engine/frozen_session.h"
#include "engine/loaded_model.h"
#include "kv/kv_layout.h"
#include "region/temporary_file_for_test.h"

namespace driftwood::engine::testing {

// The same session with its KV in a new file from `first_offset` on.
inline Result<FrozenSession> move_kv_to_file(FrozenSession frozen, uint64_t first_offset = 0) {
  auto file = std::make_shared<region::TemporaryFile>();
  uint64_t offset = first_offset;
  for (const std::span<const uint8_t> block : frozen.kv_blocks) {
    if (!file->write_at(offset, block)) return internal_error("a temporary file could not be written");
    frozen.kv_files.push_back({file->fd(), offset, block.size()});
    offset += block.size();
  }
  frozen.kv_blocks.clear();
  frozen.kv_owner = std::move(file);
  return frozen;
}

// Gives a session, whose KV is f16, KV of its own in which every element past its tokens is a NaN.
inline void fill_past_tokens(const LoadedModel& model, FrozenSession* frozen) {
  const int64_t held = frozen->computed % kKvBlockTokens;
  copy_kv(frozen);
  if (held == 0) return;
  const model::ModelConfig& config = model.config;
  const auto layout = *kv::KvLayout::create(config.layers, config.kv_heads, config.head_dim, DType::kF16);
  // What zeroing would take away from a block of NaNs is what this adds.
  std::vector<uint8_t> kept(static_cast<size_t>(layout.block_bytes()), 0xff);
  layout.zero_tokens_from(kept.data(), held);
  auto* last = const_cast<uint8_t*>(frozen->kv_blocks.back().data());
  const auto payload = static_cast<size_t>(layout.token_bytes() * kKvBlockTokens);
  for (size_t i = 0; i < payload; ++i) last[i] |= static_cast<uint8_t>(~kept[i]);
}

inline const region::TemporaryFile& file_of(const FrozenSession& frozen) {
  return *static_cast<const region::TemporaryFile*>(frozen.kv_owner.get());
}

}  // namespace driftwood::engine::testing
