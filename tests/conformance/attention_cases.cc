// Cases of attention: against ref over heads, formats, windows and lengths, and the invariances: a row alone,
// in a chunk, or beside other sequences; blocks in any physical order. Every KV byte that no row may see is
// NaN.
#include <algorithm>

#include "tests/conformance/cases.h"

namespace driftwood::conformance {
namespace {

using device::OpTable;

struct Geometry {
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
  DType dtype;
};

// Sequences of given lengths in one pool, their blocks shuffled by `seed`; the contents depend on the
// sequence only.
class Store {
 public:
  Store(Device& device, const Geometry& g, std::vector<int64_t> lengths, uint64_t seed)
      : geometry_(g), lengths_(std::move(lengths)) {
    int32_t blocks = 0;
    for (int64_t length : lengths_) blocks += static_cast<int32_t>((length + 31) / 32);
    std::vector<int32_t> order(blocks);
    for (int32_t i = 0; i < blocks; ++i) order[i] = i;
    for (int32_t i = blocks - 1; i > 0; --i) std::swap(order[i], order[random_u64(seed, 0, i, 0) % (i + 1)]);
    const int64_t half_bytes = g.kv_heads * g.head_dim * 32 * static_cast<int64_t>(dtype_size(g.dtype));
    const int64_t aligned = (half_bytes + 63) / 64 * 64;
    block_bytes_ = 2 * aligned + 64;
    pool_ = Values<uint8_t>(blocks * block_bytes_, 0xff);
    layer_ = {pool_.data(), block_bytes_, 0, aligned + 64, g.kv_heads, g.head_dim, g.dtype};
    int64_t next = 0;
    Runner run(device);
    for (size_t s = 0; s < lengths_.size(); ++s) {
      const int64_t count = (lengths_[s] + 31) / 32;
      tables_.emplace_back(order.begin() + next, order.begin() + next + count);
      next += count;
      fill(run, s);
    }
  }

  const KvLayer& layer() const { return layer_; }
  KvRow row(size_t sequence, int64_t position) const {
    return {tables_[sequence].data(), static_cast<int32_t>(position)};
  }
  // NaN over the keys before `first`.
  void forget(size_t sequence, int64_t first) {
    const int64_t size = static_cast<int64_t>(dtype_size(geometry_.dtype));
    for (int64_t t = 0; t < first; ++t) {
      uint8_t* block = pool_.data() + tables_[sequence][t / 32] * block_bytes_;
      for (int64_t i = 0; i < geometry_.kv_heads * geometry_.head_dim; ++i) {
        std::memset(block + layer_.k_offset + (i * 32 + t % 32) * size, 0xff, size);
        const int64_t head = i / geometry_.head_dim;
        const int64_t v = (head * 32 + t % 32) * geometry_.head_dim + i % geometry_.head_dim;
        std::memset(block + layer_.v_offset + v * size, 0xff, size);
      }
    }
  }

 private:
  void fill(Runner& run, size_t s) {
    const int64_t width = geometry_.kv_heads * geometry_.head_dim;
    const Floats k = random_floats(lengths_[s] * width, 100 + s);
    const Floats v = random_floats(lengths_[s] * width, 200 + s);
    Values<KvRow> rows(lengths_[s]);
    for (int64_t t = 0; t < lengths_[s]; ++t) rows[t] = row(s, t);
    run(&OpTable::kv_store, KvStoreArgs{lengths_[s], rows.data(), layer_, k.data(), width, v.data(), width});
  }

  Geometry geometry_;
  std::vector<int64_t> lengths_;
  int64_t block_bytes_ = 0;
  Values<uint8_t> pool_;
  KvLayer layer_{};
  std::vector<std::vector<int32_t>> tables_;
};

struct RowId {
  size_t sequence;
  int64_t position;
};

// The query of a row depends on its sequence and position only.
Floats attend(Runner& run, const Store& store, const Geometry& g, const std::vector<RowId>& ids,
              int64_t window, Quantised* q8 = nullptr) {
  const int64_t width = g.heads * g.head_dim;
  const int64_t tokens = static_cast<int64_t>(ids.size());
  Floats q(tokens * (width + 3));
  Values<KvRow> rows(tokens);
  for (int64_t t = 0; t < tokens; ++t) {
    const Floats one = random_floats(width, 1000 * (ids[t].sequence + 1) + ids[t].position, 2.0f);
    std::copy(one.data(), one.data() + width, q.data() + t * (width + 3));
    rows[t] = store.row(ids[t].sequence, ids[t].position);
  }
  Floats out(tokens * width);
  AttentionArgs args{tokens, rows.data(), store.layer(), g.heads,    0.125f,
                     window, q.data(),    width + 3,     out.data(), {}};
  if (q8 != nullptr) args.q8 = q8->view();
  run(&OpTable::attention, args);
  return out;
}

std::vector<RowId> last_rows(size_t sequence, int64_t length, int64_t count) {
  std::vector<RowId> ids;
  for (int64_t t = std::max<int64_t>(0, length - count); t < length; ++t) ids.push_back({sequence, t});
  return ids;
}

std::string describe(const Geometry& g, int64_t length, int64_t tokens, int64_t window) {
  return "attention H=" + std::to_string(g.heads) + " Hkv=" + std::to_string(g.kv_heads) +
         " D=" + std::to_string(g.head_dim) + (g.dtype == DType::kF16 ? " f16" : " f32") +
         " length=" + std::to_string(length) + " T=" + std::to_string(tokens) +
         " window=" + std::to_string(window);
}

constexpr Geometry kGeometries[] = {
    {9, 3, 64, DType::kF16},  {4, 4, 32, DType::kF16}, {8, 1, 16, DType::kF32}, {6, 2, 80, DType::kF16},
    {4, 1, 256, DType::kF16}, {2, 2, 20, DType::kF32}, {40, 1, 8, DType::kF16}, {3, 1, 20, DType::kF16},
};

}  // namespace

std::string attention_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (const Geometry& g : kGeometries) {
    for (int64_t length : {1, 32, 33, 257, 530}) {
      for (int64_t window : {0, 7, 300}) {
        for (int64_t tokens : {1, 3, 12}) {
          if (tokens > length || (g.head_dim == 256 && tokens == 12)) continue;
          const std::vector<RowId> ids = last_rows(0, length, tokens);
          Store store(reference, g, {length}, 5);
          if (window > 0) store.forget(0, std::max<int64_t>(0, ids[0].position - window + 1));
          const Floats wanted = attend(expected, store, g, ids, window);
          DW_RETURN_DIFFERENCE(
              compare(wanted, attend(actual, store, g, ids, window), describe(g, length, tokens, window)));
          if (std::any_of(wanted.data(), wanted.data() + wanted.size(), [](float x) { return x != x; })) {
            return describe(g, length, tokens, window) + ": a NaN of bytes no row may see came through";
          }
        }
      }
    }
  }
  // The quantised form of the result.
  const Geometry g = kGeometries[0];
  const Store store(reference, g, {40}, 5);
  Quantised a(40, g.heads * g.head_dim);
  Quantised b(40, g.heads * g.head_dim);
  attend(expected, store, g, last_rows(0, 40, 40), 0, &a);
  attend(actual, store, g, last_rows(0, 40, 40), 0, &b);
  DW_RETURN_DIFFERENCE(compare(a, b, "attention"));
  return actual.error();
}

std::string attention_invariance(Device& reference, Device& candidate) {
  Runner run(candidate);
  for (const Geometry& g : {kGeometries[0], kGeometries[1], kGeometries[3], kGeometries[6]}) {
    for (int64_t window : {0, 40}) {
      const std::vector<int64_t> lengths = {300, 70, 600};
      const Store store(reference, g, lengths, 5);
      const Store shuffled(reference, g, lengths, 6);
      // A prompt's rows, two decode rows of other sequences, then rows of the first again: tiles are cut
      // everywhere.
      std::vector<RowId> ids = last_rows(0, 290, 33);
      ids.push_back({1, 69});
      ids.push_back({2, 599});
      for (const RowId& id : last_rows(0, 300, 10)) ids.push_back(id);
      const Floats together = attend(run, store, g, ids, window);
      DW_RETURN_DIFFERENCE(
          compare(together, attend(run, shuffled, g, ids, window), "attention, blocks in another order"));
      for (size_t t = 0; t < ids.size(); ++t) {
        const Floats alone = attend(run, store, g, {ids[t]}, window);
        DW_RETURN_DIFFERENCE(compare_row(together, static_cast<int64_t>(t), alone,
                                         "attention, position " + std::to_string(ids[t].position)));
      }
      for (size_t chunk : {2, 7, 16}) {
        for (size_t from = 0; from + chunk <= ids.size(); from += chunk) {
          const Floats part = attend(run, store, g, {ids.begin() + from, ids.begin() + from + chunk}, window);
          const int64_t width = part.size() / static_cast<int64_t>(chunk);
          Floats same(part.size());
          std::copy(together.data() + from * width, together.data() + (from + chunk) * width, same.data());
          DW_RETURN_DIFFERENCE(compare(same, part, "attention, chunk of " + std::to_string(chunk)));
        }
      }
    }
  }
  return run.error();
}

}  // namespace driftwood::conformance
