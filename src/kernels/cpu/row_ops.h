// Operations on rows over Vec: embed, rms_norm, swiglu, add, softmax. Include after a vec16_ISA.h.
//
// Tails shorter than 16 use load_first/store_first: the lanes past the end are 0, and a sum of squares or of
// exponentials selects them away, so that no partial sum sees them.
#pragma once

#include "kernels/cpu/matmul_kernels.h"
#include "kernels/cpu/vec16_math.h"
#include "kernels/ref/packed_codes.h"

namespace driftwood::kernels::DW_ISA {
namespace {

constexpr int64_t kPiece = 256;  // values kept on the stack when a result is wanted only in quantised form

DW_ALWAYS_INLINE ActivationsQ8 q8_at(const ActivationsQ8& all, int64_t element) {
  const int64_t block = element / kQuantBlock;
  return {all.q + element, all.d + block, all.s + block, all.isum + block};
}

// value(i, n) for i = 0, 16, ...: the Vec of elements [i, i + n) of a row, n = 16 except for the tail.
// Written to out if there is one and quantised if q8 is wanted.
template <typename Value>
DW_ALWAYS_INLINE void emit_row(int64_t width, float* out, const ActivationsQ8& q8, int64_t q8_start,
                               Value value) {
  float stack[kPiece];
  for (int64_t start = 0; start < width; start += kPiece) {
    const int64_t count = width - start < kPiece ? width - start : kPiece;
    float* piece = out != nullptr ? out + start : stack;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) store(piece + i, value(start + i, 16));
    if (i < count)
      store_first(piece + i, value(start + i, static_cast<int>(count - i)), static_cast<int>(count - i));
    if (q8.q != nullptr) quantise_row(piece, count, q8_at(q8, q8_start + start));
  }
}

DW_ALWAYS_INLINE Vec load_up_to(const float* p, int n) { return n == 16 ? load(p) : load_first(p, n); }

void rms_norm(const RmsNormArgs& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  for (int64_t t = begin; t < end; ++t) {
    float* x = args.x + t * width;
    const float* residual = args.residual == nullptr ? nullptr : args.residual + t * width;
    Vec squares = set(0.0f);
    for (int64_t i = 0; i < width; i += 16) {
      const int n = width - i < 16 ? static_cast<int>(width - i) : 16;
      Vec v = load_up_to(x + i, n);
      if (residual != nullptr) {
        v = add(v, load_up_to(residual + i, n));
        n == 16 ? store(x + i, v) : store_first(x + i, v, n);
      }
      const Vec sum = fma(v, v, squares);
      squares = n == 16 ? sum : select(lanes_from_to(0, n), sum, squares);
    }
    const float mean = sum_tree(squares) / static_cast<float>(width);
    const Vec r = set(1.0f / __builtin_sqrtf(mean + args.epsilon));
    emit_row(width, args.out == nullptr ? nullptr : args.out + t * width, args.q8, t * width,
             [&](int64_t i, int n) __attribute__((always_inline)) {
               return mul(mul(load_up_to(x + i, n), r), load_up_to(args.weight + i, n));
             });
  }
}

void swiglu(const SwigluArgs& args, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const float* gate = args.gate + t * args.stride;
    const float* up = args.up + t * args.stride;
    emit_row(args.width, args.out == nullptr ? nullptr : args.out + t * args.width, args.q8, t * args.width,
             [&](int64_t i, int n) __attribute__((always_inline)) {
               return mul(silu(load_up_to(gate + i, n)), load_up_to(up + i, n));
             });
  }
}

void add(const AddArgs& args, int64_t begin, int64_t end) {
  int64_t i = begin * kElementPiece;
  const int64_t last = end * kElementPiece < args.count ? end * kElementPiece : args.count;
  for (; i + 16 <= last; i += 16) store(args.out + i, add(load(args.a + i), load(args.b + i)));
  const int n = static_cast<int>(last - i);
  if (n > 0) store_first(args.out + i, add(load_first(args.a + i, n), load_first(args.b + i, n)), n);
}

void softmax(const SoftmaxArgs& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  const int64_t whole = width / 16 * 16;
  const int tail = static_cast<int>(width - whole);
  const Lanes in_tail = lanes_from_to(0, tail);
  const Vec lowest = set(-__builtin_inff());
  for (int64_t t = begin; t < end; ++t) {
    const float* x = args.x + t * width;
    float* out = args.out + t * width;
    Vec top = lowest;
    for (int64_t i = 0; i < whole; i += 16) top = greater(load(x + i), top);
    if (tail > 0) top = greater(select(in_tail, load_first(x + whole, tail), lowest), top);
    const Vec m = set(largest(top));
    Vec sums = set(0.0f);
    for (int64_t i = 0; i < whole; i += 16) {
      const Vec e = exp_lanes(sub(load(x + i), m));
      store(out + i, e);
      sums = add(sums, e);
    }
    if (tail > 0) {
      const Vec e = exp_lanes(sub(load_first(x + whole, tail), m));
      store_first(out + whole, e, tail);
      sums = select(in_tail, add(sums, e), sums);
    }
    const Vec sum = set(sum_tree(sums));
    for (int64_t i = 0; i < whole; i += 16) store(out + i, div(load(out + i), sum));
    if (tail > 0) store_first(out + whole, div(load_first(out + whole, tail), sum), tail);
  }
}

// One block of 32 inputs of one row: codes of a lane stand in runs of 4 bytes, 64 apart.
DW_ALWAYS_INLINE void embed_block(const PackedMatrix& w, int64_t row, int64_t block, float* out) {
  const uint8_t* codes = ref::block_record(w, row, block) + row % kRowGroup * 4;
  const float d = ref::weight_scale(w, row, block);
  int32_t code[kQuantBlock];
  if (ref::is_four_bit(w.layout)) {
    for (int j = 0; j < 4; ++j) {
      for (int b = 0; b < 4; ++b) {
        code[8 * j + b] = codes[j * 64 + b] & 15;
        code[8 * j + 4 + b] = codes[j * 64 + b] >> 4;
      }
    }
  } else {
    for (int j = 0; j < 8; ++j) {
      for (int b = 0; b < 4; ++b) code[4 * j + b] = static_cast<int8_t>(codes[j * 64 + b]);
    }
  }
  if (w.has_min) {
    const float m = ref::weight_minimum(w, row, block);
    for (int i = 0; i < kQuantBlock; ++i)
      out[i] = __builtin_fmaf(static_cast<float>(code[i] - w.zero_point), d, m);
  } else {
    for (int i = 0; i < kQuantBlock; ++i) out[i] = static_cast<float>(code[i] - w.zero_point) * d;
  }
}

void embed(const EmbedArgs& args, int64_t begin, int64_t end) {
  const PackedMatrix& w = args.table;
  for (int64_t t = begin; t < end; ++t) {
    float* out = args.out + t * w.cols;
    if (is_quantised(w.layout)) {
      for (int64_t b = 0; b < w.cols / kQuantBlock; ++b)
        embed_block(w, args.ids[t], b, out + b * kQuantBlock);
    } else {
      for (int64_t k = 0; k < w.cols; ++k) out[k] = ref::dense_weight(w, args.ids[t], k);
    }
  }
}

}  // namespace
}  // namespace driftwood::kernels::DW_ISA
