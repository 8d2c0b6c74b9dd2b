// KV compared by block and layer, down to the first token that differs.
#include <algorithm>
#include <cstring>
#include <optional>

#include "actor/attributes.h"
#include "cli/snapshot_diff.h"

namespace driftwood::cli {
namespace {

using snapshot::StoredSection;
using snapshot::StoredTensor;

struct KvShape {
  uint64_t layers = 0, heads = 0, dims = 0, tokens = 0, element = 0, block_bytes = 0;
  // K and V of a layer each begin on 64 bytes (docs/formats/snapshot.md).
  uint64_t half_bytes() const { return (heads * dims * tokens * element + 63) / 64 * 64; }
  bool operator==(const KvShape&) const = default;
};

std::optional<KvShape> shape_of(const StoredSection& section, const StoredTensor& kv) {
  KvShape shape;
  constexpr uint64_t kMost = 1 << 20;
  const auto number = [&](const char* key, uint64_t* value) {
    const auto it = section.attributes.find(key);
    return it != section.attributes.end() && actor::parse_u64(it->second, value) && *value > 0 &&
           *value < kMost;
  };
  if (!number("layers", &shape.layers) || !number("kv_heads", &shape.heads) ||
      !number("head_dim", &shape.dims) || !number("block_tokens", &shape.tokens)) {
    return std::nullopt;
  }
  shape.element = dtype_size(kv.dtype);
  shape.block_bytes = kv.piece_bytes;
  // Divisions, so that no product of a file's numbers overflows.
  const uint64_t most =
      shape.block_bytes / shape.element / shape.layers / 2 / shape.heads / shape.dims / shape.tokens;
  if (most == 0 || shape.half_bytes() * 2 * shape.layers > shape.block_bytes) return std::nullopt;
  return shape;
}

// The first token of one layer of a block whose K or V differs; shape.tokens if none does.
uint64_t first_token(const KvShape& shape, const uint8_t* a, const uint8_t* b) {
  uint64_t first = shape.tokens;
  const uint64_t rows = shape.heads * shape.dims;
  for (uint64_t row = 0; row < rows; ++row) {  // K [head][dim][token]
    const uint64_t at = row * shape.tokens * shape.element;
    for (uint64_t t = 0; t < first; ++t) {
      if (std::memcmp(a + at + t * shape.element, b + at + t * shape.element, shape.element) != 0) first = t;
    }
  }
  const uint64_t row_bytes = shape.dims * shape.element;
  for (uint64_t head = 0; head < shape.heads; ++head) {  // V [head][token][dim]
    const uint64_t at = shape.half_bytes() + head * shape.tokens * row_bytes;
    for (uint64_t t = 0; t < first; ++t) {
      if (std::memcmp(a + at + t * row_bytes, b + at + t * row_bytes, row_bytes) != 0) first = t;
    }
  }
  return first;
}

Json diff_block(const KvShape& shape, uint64_t block, const std::vector<uint8_t>& a,
                const std::vector<uint8_t>& b) {
  Json layers = Json::array();
  uint64_t first = shape.tokens;
  for (uint64_t layer = 0; layer < shape.layers; ++layer) {
    const uint64_t at = layer * 2 * shape.half_bytes();
    if (std::memcmp(a.data() + at, b.data() + at, 2 * shape.half_bytes()) == 0) continue;
    layers.push_back(layer);
    first = std::min(first, first_token(shape, a.data() + at, b.data() + at));
  }
  Json out = {{"block", block}, {"layers", std::move(layers)}};
  if (first < shape.tokens) out["first_token"] = block * shape.tokens + first;
  return out;
}

}  // namespace

Result<Json> diff_kv(const SnapshotView& a, const StoredSection& section_a, const SnapshotView& b,
                     const StoredSection& section_b) {
  const StoredTensor* kv_a = section_a.find("kv");
  const StoredTensor* kv_b = section_b.find("kv");
  if (kv_a == nullptr && kv_b == nullptr) return Json();
  const auto digests = [](const SnapshotView& view, const StoredTensor* kv) {
    return kv == nullptr ? std::vector<snapshot::Digest>() : view.digests(*kv);
  };
  const auto digests_a = digests(a, kv_a), digests_b = digests(b, kv_b);
  if (digests_a == digests_b) return Json();
  Json out = {{"blocks_a", digests_a.size()}, {"blocks_b", digests_b.size()}};
  const size_t both = std::min(digests_a.size(), digests_b.size());
  if (both == 0) return out;
  const auto shape = shape_of(section_a, *kv_a);
  if (!shape || shape_of(section_b, *kv_b) != shape || kv_a->dtype != kv_b->dtype) {
    out["shapes_differ"] = true;
    return out;
  }
  std::vector<uint8_t> block_a(shape->block_bytes), block_b(shape->block_bytes);
  out["blocks_differing"] = 0;
  out["first_token"] = nullptr;
  out["blocks"] = Json::array();
  uint64_t differing = 0;
  for (size_t i = 0; i < both; ++i) {
    if (digests_a[i] == digests_b[i]) continue;
    if (++differing > kMostListed) continue;
    DW_RETURN_IF_ERROR(a.read(*kv_a, i * shape->block_bytes, block_a));
    DW_RETURN_IF_ERROR(b.read(*kv_b, i * shape->block_bytes, block_b));
    Json block = diff_block(*shape, i, block_a, block_b);
    if (out["first_token"].is_null() && block.contains("first_token"))
      out["first_token"] = block["first_token"];
    out["blocks"].push_back(std::move(block));
  }
  out["blocks_differing"] = differing;
  return out;
}

}  // namespace driftwood::cli
