// kv_store and attention over paged KV blocks.
#include "base/math.h"
#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::ref {
namespace {

uint8_t* block_of(const KvLayer& layer, const KvRow& row, int64_t t) {
  return layer.pool + row.block_table[t / kKvBlockTokens] * layer.block_bytes;
}

void put(const KvLayer& layer, uint8_t* base, int64_t index, float value) {
  if (layer.dtype == DType::kF32) {
    std::memcpy(base + index * 4, &value, 4);
  } else {
    const uint16_t half = f32_to_f16(value);
    std::memcpy(base + index * 2, &half, 2);
  }
}

float get(const KvLayer& layer, const uint8_t* base, int64_t index) {
  if (layer.dtype == DType::kF32) {
    float value;
    std::memcpy(&value, base + index * 4, 4);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, base + index * 2, 2);
  return f16_to_f32(half);
}

float k_at(const KvLayer& layer, const KvRow& row, int64_t head, int64_t t, int64_t d) {
  const int64_t index = (head * layer.head_dim + d) * kKvBlockTokens + t % kKvBlockTokens;
  return get(layer, block_of(layer, row, t) + layer.k_offset, index);
}

float v_at(const KvLayer& layer, const KvRow& row, int64_t head, int64_t t, int64_t d) {
  const int64_t index = (head * kKvBlockTokens + t % kKvBlockTokens) * layer.head_dim + d;
  return get(layer, block_of(layer, row, t) + layer.v_offset, index);
}

// What one run of keys gives one query.
struct RunResult {
  float m;
  float l;
  float o[kMaxHeadDim];
};

// Keys [first, last] of one run.
void one_run(const AttentionArgs& args, int64_t row, int64_t head, int64_t first, int64_t last,
             RunResult& out) {
  const KvLayer& layer = args.layer;
  const int64_t dim = layer.head_dim;
  const int64_t kv_head = head / (args.heads / layer.kv_heads);
  const float* q = args.q + row * args.q_stride + head * dim;
  float score[kKeyRun];
  out.m = -__builtin_inff();
  for (int64_t t = first; t <= last; ++t) {
    float dot = 0.0f;
    for (int64_t d = 0; d < dim; ++d)
      dot = __builtin_fmaf(q[d], k_at(layer, args.rows[row], kv_head, t, d), dot);
    score[t - first] = args.scale * dot;
    out.m = score[t - first] > out.m ? score[t - first] : out.m;
  }
  float l[16] = {};
  for (int64_t d = 0; d < dim; ++d) out.o[d] = 0.0f;
  for (int64_t t = first; t <= last; ++t) {
    const float p = exp_f32(score[t - first] - out.m);
    l[t % 16] = l[t % 16] + p;
    for (int64_t d = 0; d < dim; ++d) {
      out.o[d] = __builtin_fmaf(p, v_at(layer, args.rows[row], kv_head, t, d), out.o[d]);
    }
  }
  out.l = sum_tree(l);
}

struct Merge {
  float m;
  float l;
  float o[kMaxHeadDim];
  bool empty = true;

  void add(float run_m, float run_l, const float* run_o, int64_t dim) {
    if (empty) {
      m = run_m;
      l = run_l;
      std::memcpy(o, run_o, dim * sizeof(float));
      empty = false;
      return;
    }
    const float top = run_m > m ? run_m : m;
    const float a = exp_f32(m - top);
    const float b = exp_f32(run_m - top);
    l = __builtin_fmaf(run_l, b, l * a);
    for (int64_t d = 0; d < dim; ++d) o[d] = __builtin_fmaf(run_o[d], b, o[d] * a);
    m = top;
  }

  void finish(float* out, int64_t dim) const {
    const float inverse = 1.0f / l;
    for (int64_t d = 0; d < dim; ++d) out[d] = o[d] * inverse;
  }
};

int64_t first_key(const AttentionArgs& args, int64_t row) {
  const int64_t position = args.rows[row].position;
  return args.window > 0 && position >= args.window ? position - args.window + 1 : 0;
}

int64_t run_count(const AttentionArgs& args, int64_t row) {
  return attention_runs(args.rows[row].position, args.window);
}

// The keys of run number `run` of a row, counted from the first run the row can see.
void run_keys(const AttentionArgs& args, int64_t row, int64_t run, int64_t* first, int64_t* last) {
  const int64_t start = (first_key(args, row) / kKeyRun + run) * kKeyRun;
  *first = run == 0 ? first_key(args, row) : start;
  *last = start + kKeyRun - 1 < args.rows[row].position ? start + kKeyRun - 1 : args.rows[row].position;
}

}  // namespace

void kv_store(const KvStoreArgs& args, int64_t begin, int64_t end) {
  const KvLayer& layer = args.layer;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t t = args.rows[row].position;
    uint8_t* block = block_of(layer, args.rows[row], t);
    const int64_t slot = t % kKvBlockTokens;
    for (int64_t h = 0; h < layer.kv_heads; ++h) {
      for (int64_t d = 0; d < layer.head_dim; ++d) {
        const int64_t i = h * layer.head_dim + d;
        put(layer, block + layer.k_offset, i * kKvBlockTokens + slot, args.k[row * args.k_stride + i]);
        put(layer, block + layer.v_offset, (h * kKvBlockTokens + slot) * layer.head_dim + d,
            args.v[row * args.v_stride + i]);
      }
    }
  }
}

void attention(const AttentionArgs& args, int64_t begin, int64_t end) {
  const int64_t dim = args.layer.head_dim;
  const int64_t group = args.heads / args.layer.kv_heads;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first_row = unit / args.layer.kv_heads * kAttentionTile;
    const int64_t last_row =
        first_row + kAttentionTile < args.tokens ? first_row + kAttentionTile : args.tokens;
    const int64_t first_head = unit % args.layer.kv_heads * group;
    for (int64_t row = first_row; row < last_row; ++row) {
      for (int64_t head = first_head; head < first_head + group; ++head) {
        Merge merge;
        for (int64_t run = 0; run < run_count(args, row); ++run) {
          int64_t first;
          int64_t last;
          RunResult result;
          run_keys(args, row, run, &first, &last);
          one_run(args, row, head, first, last, result);
          merge.add(result.m, result.l, result.o, dim);
        }
        merge.finish(args.out + (row * args.heads + head) * dim, dim);
      }
    }
  }
}

void attention_run(const AttentionArgs& args, float* partials, int64_t runs, int64_t begin, int64_t end) {
  const int64_t dim = args.layer.head_dim;
  const int64_t group = args.heads / args.layer.kv_heads;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t run = unit % runs;
    const int64_t kv_head = unit / runs % args.layer.kv_heads;
    const int64_t row = unit / runs / args.layer.kv_heads;
    if (run >= run_count(args, row)) continue;
    int64_t first;
    int64_t last;
    run_keys(args, row, run, &first, &last);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      RunResult result;
      one_run(args, row, head, first, last, result);
      float* partial = partials + ((row * args.heads + head) * runs + run) * (dim + 2);
      partial[0] = result.m;
      partial[1] = result.l;
      std::memcpy(partial + 2, result.o, dim * sizeof(float));
    }
  }
}

void attention_merge(const AttentionArgs& args, const float* partials, int64_t runs, int64_t begin,
                     int64_t end) {
  const int64_t dim = args.layer.head_dim;
  for (int64_t unit = begin; unit < end; ++unit) {
    Merge merge;
    for (int64_t run = 0; run < run_count(args, unit / args.heads); ++run) {
      const float* partial = partials + (unit * runs + run) * (dim + 2);
      merge.add(partial[0], partial[1], partial + 2, dim);
    }
    merge.finish(args.out + unit * dim, dim);
  }
}

}  // namespace driftwood::kernels::ref
