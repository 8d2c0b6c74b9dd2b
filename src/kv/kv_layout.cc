#include "kv/kv_layout.h"

#include <cstring>
#include <string>

namespace driftwood::kv {

Result<KvLayout> KvLayout::create(int64_t layers, int64_t kv_heads, int64_t head_dim, DType dtype) {
  if (dtype != DType::kF16 && dtype != DType::kF32) {
    return invalid_argument("KV cache type " + std::string(dtype_name(dtype)) +
                            " is not supported; use F16 or F32");
  }
  constexpr int64_t kLimit = 1 << 16;
  if (layers <= 0 || kv_heads <= 0 || head_dim <= 0 || layers > kLimit || kv_heads > kLimit ||
      head_dim > kLimit) {
    return invalid_argument("KV shape of " + std::to_string(layers) + " layers, " + std::to_string(kv_heads) +
                            " heads of " + std::to_string(head_dim) + " is out of range");
  }
  KvLayout layout;
  layout.layers_ = layers;
  layout.kv_heads_ = kv_heads;
  layout.head_dim_ = head_dim;
  layout.dtype_ = dtype;
  // K and V of one layer have equal sizes, 32 tokens make them a multiple of 64 bytes.
  layout.layer_bytes_ = 2 * kv_heads * head_dim * kKvBlockTokens * static_cast<int64_t>(dtype_size(dtype));
  constexpr int64_t kLargestBlock = int64_t{1} << 30;
  if (layout.layer_bytes_ > kLargestBlock / layers) {
    return invalid_argument("a KV block of " + std::to_string(layers) + " layers, " +
                            std::to_string(kv_heads) + " heads of " + std::to_string(head_dim) +
                            " would pass 1 GiB");
  }
  const int64_t payload = layers * layout.layer_bytes_;
  layout.block_bytes_ = (payload + kBlockAlign - 1) / kBlockAlign * kBlockAlign;
  return layout;
}

KvLayer KvLayout::layer(uint8_t* pool, int64_t layer) const {
  return {pool, block_bytes_, k_offset(layer), v_offset(layer), kv_heads_, head_dim_, dtype_};
}

std::string KvLayout::format_id() const { return dtype_ == DType::kF16 ? "kv-f16" : "kv-f32"; }

std::string KvLayout::geometry() const {
  const std::string tokens = std::to_string(kKvBlockTokens);
  const std::string heads = std::to_string(kv_heads_);
  const std::string dims = std::to_string(head_dim_);
  return tokens + " tokens, " + std::to_string(layers_) + " layers of K[" + heads + "][" + dims + "][" +
         tokens + "] V[" + heads + "][" + tokens + "][" + dims + "], " + std::to_string(block_bytes_) +
         " bytes";
}

void KvLayout::zero_tokens_from(uint8_t* block, int64_t from) const {
  DW_CHECK(from >= 0 && from <= kKvBlockTokens, "token outside its block");
  const auto element = static_cast<int64_t>(dtype_size(dtype_));
  const auto gone = static_cast<size_t>((kKvBlockTokens - from) * element);
  for (int64_t layer = 0; layer < layers_; ++layer) {
    uint8_t* k = block + k_offset(layer);
    for (int64_t row = 0; row < kv_heads_ * head_dim_; ++row) {
      std::memset(k + (row * kKvBlockTokens + from) * element, 0, gone);
    }
    uint8_t* v = block + v_offset(layer);
    for (int64_t head = 0; head < kv_heads_; ++head) {
      std::memset(v + (head * kKvBlockTokens + from) * head_dim_ * element, 0,
                  gone * static_cast<size_t>(head_dim_));
    }
  }
  const int64_t payload = layers_ * layer_bytes_;
  std::memset(block + payload, 0, static_cast<size_t>(block_bytes_ - payload));
}

}  // namespace driftwood::kv
