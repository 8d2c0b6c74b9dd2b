// Cases of the ops about positions: rope_table, rope, kv_store.
#include "tests/conformance/cases.h"

namespace driftwood::conformance {
namespace {

using device::OpTable;

Values<int32_t> some_positions(int64_t tokens) {
  Values<int32_t> positions(tokens);
  for (int64_t t = 0; t < tokens; ++t) positions[t] = static_cast<int32_t>(t * t * 1237 % 200'000);
  return positions;
}

Floats frequencies(int64_t half) {
  Floats inv_freq(half);
  float value = 1.0f;
  for (int64_t i = 0; i < half; ++i, value *= 0.77f) inv_freq[i] = value;
  return inv_freq;
}

}  // namespace

std::string rope_table_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (int64_t half : {1, 10, 32, 33}) {
    for (int64_t tokens : kTokenCounts) {
      const Values<int32_t> positions = some_positions(tokens);
      const Floats inv_freq = frequencies(half);
      Floats cosine[2] = {Floats(tokens * half), Floats(tokens * half)};
      Floats sine[2] = {Floats(tokens * half), Floats(tokens * half)};
      for (int side = 0; side < 2; ++side) {
        (side == 0 ? expected : actual)(&OpTable::rope_table,
                                        RopeTableArgs{tokens, half, positions.data(), inv_freq.data(), 1.1f,
                                                      cosine[side].data(), sine[side].data()});
      }
      DW_RETURN_DIFFERENCE(compare(cosine[0], cosine[1], "rope_table cosine"));
      DW_RETURN_DIFFERENCE(compare(sine[0], sine[1], "rope_table sine"));
    }
  }
  return actual.error();
}

std::string rope_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    for (int64_t half : {1, 7, 8, 16, 20, 32, 45}) {
      for (int64_t tokens : kTokenCounts) {
        const int64_t heads = 3;
        const int64_t head_dim = 2 * half + (half % 2 == 0 ? 6 : 0);
        const int64_t stride = heads * head_dim + 5;
        const Floats cosine = random_floats(tokens * half, 21);
        const Floats sine = random_floats(tokens * half, 22);
        Floats a = random_floats(tokens * stride, 23);
        Floats b = a;
        auto args = [&](Floats& x) {
          return RopeArgs{tokens, heads, head_dim, half, style, x.data(), stride, cosine.data(), sine.data()};
        };
        expected(&OpTable::rope, args(a));
        actual(&OpTable::rope, args(b));
        DW_RETURN_DIFFERENCE(compare(a, b, "rope half=" + std::to_string(half)));
      }
    }
  }
  return actual.error();
}

std::string kv_store_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  constexpr int64_t kBlocks = 4;
  for (DType dtype : {DType::kF16, DType::kF32}) {
    for (int64_t head_dim : {1, 20, 64, 80}) {
      for (int64_t tokens : kTokenCounts) {
        const int64_t heads = 2;
        const int64_t width = heads * head_dim;
        const int64_t half_bytes = (width * 32 * static_cast<int64_t>(dtype_size(dtype)) + 63) / 64 * 64;
        const int64_t block_bytes = 2 * half_bytes + 128;
        const Floats k = random_floats(tokens * width, 24, 100.0f);
        const Floats v = random_floats(tokens * (width + 1), 25, 1e-5f);
        const int32_t blocks[] = {3, 0, 2, 1};
        Values<KvRow> rows(tokens);
        for (int64_t t = 0; t < tokens; ++t) rows[t] = {blocks, static_cast<int32_t>(t * 3 + 5)};
        Values<uint8_t> pool[2] = {Values<uint8_t>(kBlocks * block_bytes, 0xee),
                                   Values<uint8_t>(kBlocks * block_bytes, 0xee)};
        for (int side = 0; side < 2; ++side) {
          const KvLayer layer{pool[side].data(), block_bytes, 64, 64 + half_bytes, heads, head_dim, dtype};
          (side == 0 ? expected : actual)(
              &OpTable::kv_store,
              KvStoreArgs{tokens, rows.data(), layer, k.data(), width, v.data(), width + 1});
        }
        DW_RETURN_DIFFERENCE(compare(pool[0], pool[1], "kv_store D=" + std::to_string(head_dim)));
      }
    }
  }
  return actual.error();
}

}  // namespace driftwood::conformance
