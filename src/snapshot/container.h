// The numbers of the snapshot container, and how a tensor is padded in it (docs/formats/snapshot.md).
//
// Every tensor occupies a whole number of 64 KiB units, so that each can be mapped whatever the system's
// page. The shape that safetensors sees covers the padding; the true shape stands in the directory. The
// stored shape follows from dtype and true shape alone:
//   no padding needed            as it is
//   padding is whole rows        more rows (the first dimension grows), zeros
//   otherwise                    one dimension of the same dtype, zeros behind the true bytes
// Plain functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace driftwood::snapshot {

inline constexpr std::string_view kFormatNumber = "0";
inline constexpr uint64_t kUnitBytes = 64 * 1024;
inline constexpr uint64_t kMaxHeaderBytes = 16 * 1024 * 1024;
inline constexpr size_t kMaxTensors = 16'384;  // piece hashes included
inline constexpr size_t kMaxNameBytes = 200;
inline constexpr uint64_t kMinPieceBytes = 4 * 1024;
inline constexpr uint64_t kMaxPieceBytes = 1024 * 1024 * 1024;

constexpr uint64_t padded_bytes(uint64_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes; }

// Bytes of a dense tensor; nothing if a dimension is negative, there are more than 8, or the size exceeds
// 2^62.
std::optional<uint64_t> tensor_bytes(DType dtype, const std::vector<int64_t>& shape);

// Precondition: tensor_bytes(dtype, shape) has a value.
std::vector<int64_t> stored_shape(DType dtype, const std::vector<int64_t>& shape);

// Pieces of a tensor that is hashed in pieces; the last may be short.
constexpr uint64_t piece_count(uint64_t bytes, uint64_t piece_bytes) {
  return bytes / piece_bytes + (bytes % piece_bytes != 0 ? 1 : 0);
}

}  // namespace driftwood::snapshot
