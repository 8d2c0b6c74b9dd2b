// Attention over Vec. Include after a vec16_ISA.h. Numerics: docs/numerics.md, attention.
//
// A pass serves rows of one sequence with ascending positions and the query heads of one KV head: up to
// kMaxQueries (row, head) pairs, row-major. It goes through the sequence run by run (256 keys), and through a
// run in three phases: scores (lanes = the 32 keys of a block), softmax over what each query sees, values
// (lanes = head dims). Scores and values are the same small product, tile_product: kQueryTile queries share
// each load of K or V.
//
// Keys a query does not see: their scores may be computed (a lane of their own) but are never used; their V
// is never multiplied, not even by 0, because bytes nobody wrote may be NaN. f16 is converted in registers,
// once per tile of queries. All state is on the stack (about 100 KiB).
#pragma once

#include "kernels/cpu/vec16_math.h"
#include "kernels/kernel_table.h"

namespace driftwood::kernels::DW_ISA {
namespace {

constexpr int kMaxQueries = 32;
constexpr int64_t kMaxState = 8192;         // queries * head_dim of a pass
constexpr int kScoreStride = kKeyRun + 16;  // not a power of two: rows spread over the sets of a cache

struct Pass {
  const AttentionArgs* args;
  int64_t kv_head;
  int64_t first_head;
  int64_t heads;  // of this pass
  int64_t first_row;
  int64_t rows;
};

// What the queries of a pass hold of the current run. Keys are counted from the start of the run.
struct RunState {
  int begin[kMaxQueries];  // visible keys [begin, end); begin >= end: none in this run
  int end[kMaxQueries];
  const float* q[kMaxQueries];
  float m[kMaxQueries];
  float l[kMaxQueries];
  alignas(64) float score[kMaxQueries][kScoreStride];
  alignas(64) float o[kMaxState];  // [query][head_dim]
};

DW_ALWAYS_INLINE int64_t first_visible_key(const AttentionArgs& args, int64_t row) {
  const int64_t position = args.rows[row].position;
  return args.window > 0 && position >= args.window ? position - args.window + 1 : 0;
}

// acc[q][j] += a[q][i] * b[i][lanes of register j], i ascending. The order of loops keeps kQueries + 1
// registers busy beside the accumulators.
template <int kQueries, int kRegs, typename Element>
DW_ALWAYS_INLINE void tile_product(const float* const (&a)[kQueries], int64_t n, const Element* b,
                                   int64_t stride, Reg (&acc)[kQueries][kRegs]) {
  for (int64_t i = 0; i < n; ++i, b += stride) {
    Reg x[kQueries];
    for (int q = 0; q < kQueries; ++q) x[q] = reg_set(a[q][i]);
    for (int j = 0; j < kRegs; ++j) {
      const Reg column = reg_load(b + kRegLanes * j);
      for (int q = 0; q < kQueries; ++q) acc[q][j] = reg_fma(x[q], column, acc[q][j]);
    }
  }
}

// Scores of the 32 keys of a block for queries [query, query + kQueries).
template <int kQueries, typename Element>
__attribute__((noinline)) void score_tile(const AttentionArgs& args, int query, const Element* k, int64_t key,
                                          RunState& run) {
  constexpr int kRegs = kKvBlockTokens / kRegLanes;
  const float* q[kQueries];
  Reg acc[kQueries][kRegs];
  for (int i = 0; i < kQueries; ++i) {
    q[i] = run.q[query + i];
    for (int j = 0; j < kRegs; ++j) acc[i][j] = reg_set(0.0f);
  }
  tile_product(q, args.layer.head_dim, k, kKvBlockTokens, acc);
  const Reg scale = reg_set(args.scale);
  for (int i = 0; i < kQueries; ++i) {
    float* score = run.score[query + i] + key;
    for (int j = 0; j < kRegs; ++j) reg_store(score + kRegLanes * j, reg_mul(scale, acc[i][j]));
  }
}

// o[i] += p[i][t] * v[t][0 .. kLanes), t in [0, n) ascending.
template <int kQueries, int kLanes, typename Element>
DW_ALWAYS_INLINE void add_values(const float* const (&p)[kQueries], int64_t n, const Element* v, int64_t dim,
                                 float* o) {
  constexpr int kRegs = kLanes / kRegLanes;
  Reg acc[kQueries][kRegs];
  for (int i = 0; i < kQueries; ++i) {
    for (int j = 0; j < kRegs; ++j) acc[i][j] = reg_load(o + i * dim + kRegLanes * j);
  }
  tile_product(p, n, v, dim, acc);
  for (int i = 0; i < kQueries; ++i) {
    for (int j = 0; j < kRegs; ++j) reg_store(o + i * dim + kRegLanes * j, acc[i][j]);
  }
}

// Adds keys [begin, end) of the run, all in one block whose first key's V is v, to the queries' values.
template <int kQueries, typename Element>
__attribute__((noinline)) void value_tile(int query, int begin, int end, const Element* v, int64_t dim,
                                          RunState& run) {
  const float* p[kQueries];
  for (int i = 0; i < kQueries; ++i) p[i] = run.score[query + i] + begin;
  const Element* from = v + begin % kKvBlockTokens * dim;
  float* o = run.o + query * dim;
  int64_t d = 0;
  for (; d + 32 <= dim; d += 32) add_values<kQueries, 32>(p, end - begin, from + d, dim, o + d);
  for (; d + 16 <= dim; d += 16) add_values<kQueries, 16>(p, end - begin, from + d, dim, o + d);
  for (; d < dim; ++d) {
    for (int i = 0; i < kQueries; ++i) {
      float acc = run.o[(query + i) * dim + d];
      for (int t = 0; t < end - begin; ++t) {
        const Element stored = from[t * dim + d];
        float value;
        if constexpr (sizeof(Element) == 2)
          value = f16_to_f32(stored);
        else
          value = stored;
        acc = __builtin_fmaf(p[i][t], value, acc);
      }
      run.o[(query + i) * dim + d] = acc;
    }
  }
}

// How many of `left` queries to take together: the widest tile, but two pairs rather than a tile and a lone
// query.
DW_ALWAYS_INLINE int tile_width(int left) {
  if (left == kQueryTile + 1 && left % 2 == 0 && left <= 4) return left / 2;
  return left < kQueryTile ? left : kQueryTile;
}

// Calls function.template operator()<N>() for N = width, 1 <= width <= kQueryTile.
template <int kWidth = kQueryTile, typename Function>
DW_ALWAYS_INLINE void with_width(int width, Function function) {
  if constexpr (kWidth == 1) {
    function.template operator()<1>();
  } else if (width == kWidth) {
    function.template operator()<kWidth>();
  } else {
    with_width<kWidth - 1>(width, function);
  }
}

// Scores of keys [key, key + 32) for queries [from, to).
template <typename Element>
DW_ALWAYS_INLINE void score_block(const AttentionArgs& args, int from, int to, const Element* k, int64_t key,
                                  RunState& run) {
  for (int query = from; query < to;) {
    const int width = tile_width(to - query);
    with_width(width, [&]<int kWidth>()
                          __attribute__((always_inline)) { score_tile<kWidth>(args, query, k, key, run); });
    query += width;
  }
}

// Values of keys [key, key + 32) for queries [from, to). Queries of a tile may see different keys (rows of
// the tile, window edges): the common ones together, what comes before and after for each query alone, in
// ascending order.
template <typename Element>
DW_ALWAYS_INLINE void value_block(int from, int to, const Element* v, int key, int64_t dim, RunState& run) {
  for (int query = from; query < to;) {
    const int width = tile_width(to - query);
    int common_begin = key;
    int common_end = key + kKvBlockTokens;
    for (int i = query; i < query + width; ++i) {
      common_begin = run.begin[i] > common_begin ? run.begin[i] : common_begin;
      common_end = run.end[i] < common_end ? run.end[i] : common_end;
    }
    if (common_begin >= common_end) common_begin = common_end = key + kKvBlockTokens;
    for (int i = query; i < query + width; ++i) {
      const int begin = run.begin[i] > key ? run.begin[i] : key;
      const int end = run.end[i] < common_begin ? run.end[i] : common_begin;
      if (begin < end) value_tile<1>(i, begin, end, v, dim, run);
    }
    if (common_begin < common_end) {
      with_width(width, [&]<int kWidth>() __attribute__((always_inline)) {
        value_tile<kWidth>(query, common_begin, common_end, v, dim, run);
      });
    }
    for (int i = query; i < query + width; ++i) {
      const int end = run.end[i] < key + kKvBlockTokens ? run.end[i] : key + kKvBlockTokens;
      if (common_end < end) value_tile<1>(i, common_end, end, v, dim, run);
    }
    query += width;
  }
}

// Scores to exponentials of what the query sees; m and l of the run. Key t of the run belongs to partial sum
// t mod 16.
DW_ALWAYS_INLINE void softmax_run(int query, RunState& run) {
  float* score = run.score[query];
  const int begin = run.begin[query];
  const int end = run.end[query];
  const int first = begin / 16 * 16;  // whole groups of 16 lie in [whole, last); the others are cut
  const int whole = (begin + 15) / 16 * 16;
  const int last = end / 16 * 16 > whole ? end / 16 * 16 : whole;
  const Vec lowest = set(-__builtin_inff());
  const auto seen = [&](int i) __attribute__((always_inline)) {
    return lanes_from_to(begin > i ? begin - i : 0, end - i < 16 ? end - i : 16);
  };
  Vec top = lowest;
  if (first < whole) top = greater(select(seen(first), load(score + first), lowest), top);
  for (int i = whole; i < last; i += 16) top = greater(load(score + i), top);
  if (last < end) top = greater(select(seen(last), load(score + last), lowest), top);
  run.m[query] = largest(top);
  const Vec m = set(run.m[query]);
  Vec sums = set(0.0f);
  const auto cut = [&](int i) __attribute__((always_inline)) {
    const Vec e = exp_lanes(sub(load(score + i), m));
    store(score + i, e);
    sums = select(seen(i), add(sums, e), sums);
  };
  if (first < whole) cut(first);
  for (int i = whole; i < last; i += 16) {
    const Vec e = exp_lanes(sub(load(score + i), m));
    store(score + i, e);
    sums = add(sums, e);
  }
  if (last < end) cut(last);
  run.l[query] = sum_tree(sums);
}

// The queries [from, to) that see any key of [key, key + 32): contiguous, since positions ascend.
DW_ALWAYS_INLINE bool queries_of_block(const RunState& run, int key, int queries, int* from, int* to) {
  *from = 0;
  while (*from < queries && (run.end[*from] <= key || run.begin[*from] >= run.end[*from])) ++*from;
  *to = *from;
  while (*to < queries && run.begin[*to] < key + kKvBlockTokens && run.begin[*to] < run.end[*to] &&
         run.end[*to] > key) {
    ++*to;
  }
  return *from < *to;
}

// The blocks of one run, for one KV head.
//
// Blocks start at multiples of 64 KiB, so one head's K of every block falls into the same few sets of a
// cache, and block tables are no sequence a processor could guess: without asking ahead each block comes from
// far away.
template <typename Element>
struct BlockReader {
  const Pass& pass;
  int64_t start;  // first key of the run, absolute
  int64_t elements = kKvBlockTokens * pass.args->layer.head_dim;

  DW_ALWAYS_INLINE const Element* at(int64_t key, int64_t offset) const {
    const KvLayer& layer = pass.args->layer;
    const int32_t* blocks = pass.args->rows[pass.first_row].block_table;
    const uint8_t* block = layer.pool + blocks[(start + key) / kKvBlockTokens] * layer.block_bytes;
    return reinterpret_cast<const Element*>(block + offset) + pass.kv_head * elements;
  }
  DW_ALWAYS_INLINE const Element* k(int64_t key) const { return at(key, pass.args->layer.k_offset); }
  DW_ALWAYS_INLINE const Element* v(int64_t key) const { return at(key, pass.args->layer.v_offset); }

  // Asks for what is read after this: step 0..255 is K of that key's block, 256..511 is V of key step - 256,
  // 512 K of the next run. Only blocks the last query of the pass sees are there to be asked for.
  DW_ALWAYS_INLINE void prefetch(int64_t step) const {
    const int64_t seen = pass.args->rows[pass.first_row + pass.rows - 1].position - start;
    const Element* next = nullptr;
    if (step < kKeyRun && step <= seen) {
      next = k(step);
    } else if (step < 2 * kKeyRun) {
      int64_t key = step - kKeyRun;
      if (key < 0) key = 0;
      if (key <= seen) next = v(key);
    } else if (kKeyRun <= seen) {
      next = k(kKeyRun);
    }
    if (next == nullptr) return;
    for (int64_t i = 0; i < elements; i += 64 / static_cast<int64_t>(sizeof(Element)))
      __builtin_prefetch(next + i);
  }
};

// All phases of run number run_index (by absolute position) for all queries of the pass.
template <typename Element>
__attribute__((noinline)) void one_run(const Pass& pass, int64_t run_index, RunState& run) {
  const AttentionArgs& args = *pass.args;
  const int64_t dim = args.layer.head_dim;
  const int queries = static_cast<int>(pass.rows * pass.heads);
  const int64_t start = run_index * kKeyRun;
  for (int query = 0; query < queries; ++query) {
    const int64_t row = pass.first_row + query / pass.heads;
    run.q[query] = args.q + row * args.q_stride + (pass.first_head + query % pass.heads) * dim;
    const int64_t begin = first_visible_key(args, row) - start;
    const int64_t end = args.rows[row].position + 1 - start;
    run.begin[query] = static_cast<int>(begin < 0 ? 0 : begin > kKeyRun ? kKeyRun : begin);
    run.end[query] = static_cast<int>(end < 0 ? 0 : end > kKeyRun ? kKeyRun : end);
  }
  const BlockReader<Element> reader{pass, start};
  int from;
  int to;
  for (int key = 0; key < kKeyRun; key += kKvBlockTokens) {
    if (!queries_of_block(run, key, queries, &from, &to)) continue;
    const Element* k = reader.k(key);
    reader.prefetch(key + kKvBlockTokens);
    score_block(args, from, to, k, key, run);
  }
  for (int query = 0; query < queries; ++query) {
    if (run.begin[query] >= run.end[query]) continue;
    softmax_run(query, run);
    std::memset(run.o + query * dim, 0, static_cast<size_t>(dim) * sizeof(float));
  }
  for (int key = 0; key < kKeyRun; key += kKvBlockTokens) {
    if (!queries_of_block(run, key, queries, &from, &to)) continue;
    const Element* v = reader.v(key);
    reader.prefetch(key + kKeyRun + kKvBlockTokens);
    value_block(from, to, v, key, dim, run);
  }
}

void one_run(const Pass& pass, int64_t run_index, RunState& run) {
  if (pass.args->layer.dtype == DType::kF16) {
    one_run<uint16_t>(pass, run_index, run);
  } else {
    one_run<float>(pass, run_index, run);
  }
}

// The merged runs of one query.
struct Merged {
  float m = 0.0f;
  float l = 0.0f;
  bool empty = true;
};

DW_ALWAYS_INLINE void merge_run(float m, float l, const float* o, int64_t dim, Merged& state,
                                float* state_o) {
  if (state.empty) {
    state = {m, l, false};
    std::memcpy(state_o, o, static_cast<size_t>(dim) * sizeof(float));
    return;
  }
  const float top = m > state.m ? m : state.m;
  const float a = exp_f32(state.m - top);
  const float b = exp_f32(m - top);
  state.l = __builtin_fmaf(l, b, state.l * a);
  state.m = top;
  int64_t d = 0;
  for (; d + 16 <= dim; d += 16) {
    store(state_o + d, fma(load(o + d), set(b), mul(load(state_o + d), set(a))));
  }
  for (; d < dim; ++d) state_o[d] = __builtin_fmaf(o[d], b, state_o[d] * a);
}

DW_ALWAYS_INLINE void finish(const Merged& state, const float* state_o, int64_t dim, float* out) {
  const float inverse = 1.0f / state.l;
  int64_t d = 0;
  for (; d + 16 <= dim; d += 16) store(out + d, mul(load(state_o + d), set(inverse)));
  for (; d < dim; ++d) out[d] = state_o[d] * inverse;
}

void whole_pass(const Pass& pass) {
  const AttentionArgs& args = *pass.args;
  const int64_t dim = args.layer.head_dim;
  const int queries = static_cast<int>(pass.rows * pass.heads);
  RunState run;
  Merged merged[kMaxQueries];
  alignas(64) float o[kMaxState];
  const int64_t first_run = first_visible_key(args, pass.first_row) / kKeyRun;
  const int64_t last_run = args.rows[pass.first_row + pass.rows - 1].position / kKeyRun;
  for (int64_t run_index = first_run; run_index <= last_run; ++run_index) {
    one_run(pass, run_index, run);
    for (int query = 0; query < queries; ++query) {
      if (run.begin[query] >= run.end[query]) continue;
      merge_run(run.m[query], run.l[query], run.o + query * dim, dim, merged[query], o + query * dim);
    }
  }
  for (int query = 0; query < queries; ++query) {
    const int64_t row = pass.first_row + query / pass.heads;
    const int64_t head = pass.first_head + query % pass.heads;
    finish(merged[query], o + query * dim, dim, args.out + (row * args.heads + head) * dim);
  }
}

DW_ALWAYS_INLINE int64_t queries_per_pass(int64_t dim) {
  return kMaxState / dim < kMaxQueries ? kMaxState / dim : kMaxQueries;
}

void attention(const AttentionArgs& args, int64_t begin, int64_t end) {
  const int64_t group = args.heads / args.layer.kv_heads;
  const int64_t limit = queries_per_pass(args.layer.head_dim);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t kv_head = unit % args.layer.kv_heads;
    int64_t row = unit / args.layer.kv_heads * kAttentionTile;
    const int64_t last_row = row + kAttentionTile < args.tokens ? row + kAttentionTile : args.tokens;
    while (row < last_row) {
      int64_t rows = 1;
      while (row + rows < last_row && (rows + 1) * group <= limit &&
             args.rows[row + rows].block_table == args.rows[row].block_table &&
             args.rows[row + rows].position > args.rows[row + rows - 1].position) {
        ++rows;
      }
      for (int64_t head = 0; head < group; head += limit) {
        const int64_t heads = group - head < limit ? group - head : limit;
        whole_pass({&args, kv_head, kv_head * group + head, heads, row, rows});
      }
      row += rows;
    }
  }
}

void attention_run(const AttentionArgs& args, float* partials, int64_t runs, int64_t begin, int64_t end) {
  const int64_t dim = args.layer.head_dim;
  const int64_t group = args.heads / args.layer.kv_heads;
  const int64_t limit = queries_per_pass(dim);
  RunState state;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t run = unit % runs;
    const int64_t kv_head = unit / runs % args.layer.kv_heads;
    const int64_t row = unit / runs / args.layer.kv_heads;
    if (run >= attention_runs(args.rows[row].position, args.window)) continue;
    for (int64_t first = 0; first < group; first += limit) {
      const int64_t heads = group - first < limit ? group - first : limit;
      const Pass pass{&args, kv_head, kv_head * group + first, heads, row, 1};
      one_run(pass, first_visible_key(args, row) / kKeyRun + run, state);
      for (int64_t h = 0; h < heads; ++h) {
        float* partial = partials + ((row * args.heads + pass.first_head + h) * runs + run) * (dim + 2);
        partial[0] = state.m[h];
        partial[1] = state.l[h];
        std::memcpy(partial + 2, state.o + h * dim, static_cast<size_t>(dim) * sizeof(float));
      }
    }
  }
}

void attention_merge(const AttentionArgs& args, const float* partials, int64_t runs, int64_t begin,
                     int64_t end) {
  const int64_t dim = args.layer.head_dim;
  float o[kMaxHeadDim];
  for (int64_t unit = begin; unit < end; ++unit) {
    Merged merged;
    const int64_t count = attention_runs(args.rows[unit / args.heads].position, args.window);
    for (int64_t run = 0; run < count; ++run) {
      const float* partial = partials + (unit * runs + run) * (dim + 2);
      merge_run(partial[0], partial[1], partial + 2, dim, merged, o);
    }
    finish(merged, o, dim, args.out + unit * dim);
  }
}

}  // namespace
}  // namespace driftwood::kernels::DW_ISA
