// KvLayout: the bytes of one KV block, the unit of memory, sharing and (later) disk: 32 tokens of every layer
// of one group.
//
//     layer 0: K [Hkv][D][32 tokens]   V [Hkv][32 tokens][D]
//     layer 1: K ...                   V ...
//     ...      zero bytes up to a multiple of 64 KiB
// K has tokens innermost and V has D innermost, so that in both products of attention a vector lane is an
// independent output. Elements are f16 (round to nearest even) or f32. Each K and V starts on 64 bytes.
//
// Plain values; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/status.h"
#include "tensor/op_args.h"

namespace driftwood::kv {

inline constexpr int64_t kBlockAlign = 64 * 1024;

class KvLayout {
 public:
  // invalid_argument: a dtype other than f16 or f32, no layers, heads or dims, or a block beyond 1 GiB.
  static Result<KvLayout> create(int64_t layers, int64_t kv_heads, int64_t head_dim, DType dtype);

  int64_t layers() const { return layers_; }
  int64_t kv_heads() const { return kv_heads_; }
  int64_t head_dim() const { return head_dim_; }
  DType dtype() const { return dtype_; }
  // A multiple of 64 KiB.
  int64_t block_bytes() const { return block_bytes_; }
  // Bytes a token takes, padding of the block left out.
  int64_t token_bytes() const {
    return 2 * layers_ * kv_heads_ * head_dim_ * static_cast<int64_t>(dtype_size(dtype_));
  }
  int64_t k_offset(int64_t layer) const { return layer * layer_bytes_; }
  int64_t v_offset(int64_t layer) const { return layer * layer_bytes_ + layer_bytes_ / 2; }

  // The kernels' view of a layer in a pool at `pool`.
  KvLayer layer(uint8_t* pool, int64_t layer) const;

  // The two names by which saved blocks are told apart: what an element is, and where it lies.
  std::string format_id() const;  // "kv-f16", "kv-f32"
  std::string geometry() const;   // "32 tokens, 30 layers of K[3][64][32] V[3][32][64], 786432 bytes"

  // Zeroes what belongs to tokens [from, 32) in all layers, and the padding.
  void zero_tokens_from(uint8_t* block, int64_t from) const;

 private:
  KvLayout() = default;
  int64_t layers_ = 0;
  int64_t kv_heads_ = 0;
  int64_t head_dim_ = 0;
  DType dtype_ = DType::kF16;
  int64_t layer_bytes_ = 0;
  int64_t block_bytes_ = 0;
};

// Blocks that hold `tokens` tokens.
constexpr int64_t blocks_for(int64_t tokens) { return (tokens + kKvBlockTokens - 1) / kKvBlockTokens; }

}  // namespace driftwood::kv
