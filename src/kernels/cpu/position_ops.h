// Operations about positions over Vec: rope_table, rope and kv_store. Include after a vec16_ISA.h.
#pragma once

#include "kernels/cpu/vec16_math.h"
#include "kernels/kernel_table.h"

namespace driftwood::kernels::DW_ISA {
namespace {

void rope_table(const RopeTableArgs& args, int64_t begin, int64_t end) {
  const double scale = args.scale;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t i = 0; i < args.half; ++i) {
      double sine;
      double cosine;
      sin_cos_f64(static_cast<double>(args.positions[t]) * static_cast<double>(args.inv_freq[i]), &sine,
                  &cosine);
      args.cosine[t * args.half + i] = static_cast<float>(cosine * scale);
      args.sine[t * args.half + i] = static_cast<float>(sine * scale);
    }
  }
}

DW_ALWAYS_INLINE void rotate_pair(float* first, float* second, float c, float s) {
  const float a = *first;
  const float b = *second;
  *first = __builtin_fmaf(-b, s, a * c);
  *second = __builtin_fmaf(a, s, b * c);
}

DW_ALWAYS_INLINE void rope_halves(float* x, int64_t half, const float* cosine, const float* sine) {
  int64_t i = 0;
  for (; i + 16 <= half; i += 16) {
    const Vec c = load(cosine + i);
    const Vec s = load(sine + i);
    const Vec a = load(x + i);
    const Vec b = load(x + half + i);
    store(x + i, fma(negate(b), s, mul(a, c)));
    store(x + half + i, fma(a, s, mul(b, c)));
  }
  for (; i < half; ++i) rotate_pair(x + i, x + half + i, cosine[i], sine[i]);
}

// The pair's other value times -s (even lanes) or s (odd lanes), added to x * c: fma(-b, s, .) = fma(b, -s,
// .).
DW_ALWAYS_INLINE void rope_interleaved(float* x, int64_t half, const float* cosine, const float* sine) {
  int64_t i = 0;
  for (; i + 8 <= half; i += 8) {
    const Vec v = load(x + 2 * i);
    const Vec s = negate_even(load_doubled(sine + i));
    store(x + 2 * i, fma(swap_pairs(v), s, mul(v, load_doubled(cosine + i))));
  }
  for (; i < half; ++i) rotate_pair(x + 2 * i, x + 2 * i + 1, cosine[i], sine[i]);
}

void rope(const RopeArgs& args, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const float* cosine = args.cosine + t * args.half;
    const float* sine = args.sine + t * args.half;
    for (int64_t h = 0; h < args.heads; ++h) {
      float* x = args.x + t * args.stride + h * args.head_dim;
      if (args.style == RopeStyle::kHalf) {
        rope_halves(x, args.half, cosine, sine);
      } else {
        rope_interleaved(x, args.half, cosine, sine);
      }
    }
  }
}

// Values as stored: f16 by 16 at a time, f32 as they are.
DW_ALWAYS_INLINE void encode(const float* x, int64_t count, uint16_t* out) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) store(out + i, load(x + i));
  for (; i < count; ++i) out[i] = f32_to_f16(x[i]);
}
DW_ALWAYS_INLINE void encode(const float* x, int64_t count, float* out) {
  std::memcpy(out, x, static_cast<size_t>(count) * sizeof(float));
}

template <typename Element>
DW_ALWAYS_INLINE void store_row(const KvLayer& layer, uint8_t* block, int64_t slot, const float* k,
                                const float* v) {
  const int64_t dim = layer.head_dim;
  auto* k_base = reinterpret_cast<Element*>(block + layer.k_offset);
  auto* v_base = reinterpret_cast<Element*>(block + layer.v_offset);
  Element encoded[kMaxHeadDim];
  for (int64_t h = 0; h < layer.kv_heads; ++h) {
    encode(k + h * dim, dim, encoded);
    Element* column = k_base + h * dim * kKvBlockTokens + slot;
    for (int64_t d = 0; d < dim; ++d) column[d * kKvBlockTokens] = encoded[d];
    encode(v + h * dim, dim, v_base + (h * kKvBlockTokens + slot) * dim);
  }
}

void kv_store(const KvStoreArgs& args, int64_t begin, int64_t end) {
  const KvLayer& layer = args.layer;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t position = args.rows[row].position;
    uint8_t* block = layer.pool + args.rows[row].block_table[position / kKvBlockTokens] * layer.block_bytes;
    const int64_t slot = position % kKvBlockTokens;
    const float* k = args.k + row * args.k_stride;
    const float* v = args.v + row * args.v_stride;
    if (layer.dtype == DType::kF16) {
      store_row<uint16_t>(layer, block, slot, k, v);
    } else {
      store_row<float>(layer, block, slot, k, v);
    }
  }
}

}  // namespace
}  // namespace driftwood::kernels::DW_ISA
