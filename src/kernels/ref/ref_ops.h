// The reference kernels: docs/numerics.md as scalar code, one file per family of operations.
//
// This is the definition of portable-1. Clarity before speed; every other kernel is compared with these
// functions byte by byte. Units and arguments as in kernels/kernel_table.h.
#pragma once

#include "kernels/kernel_table.h"

namespace driftwood::kernels::ref {

void embed(const EmbedArgs& args, int64_t begin, int64_t end);
void rms_norm(const RmsNormArgs& args, int64_t begin, int64_t end);
void quantise(const QuantiseArgs& args, int64_t begin, int64_t end);
void matmul(const MatmulArgs& args, int64_t begin, int64_t end);
void rope_table(const RopeTableArgs& args, int64_t begin, int64_t end);
void rope(const RopeArgs& args, int64_t begin, int64_t end);
void kv_store(const KvStoreArgs& args, int64_t begin, int64_t end);
void attention(const AttentionArgs& args, int64_t begin, int64_t end);
void attention_run(const AttentionArgs& args, float* partials, int64_t runs, int64_t begin, int64_t end);
void attention_merge(const AttentionArgs& args, const float* partials, int64_t runs, int64_t begin,
                     int64_t end);
void swiglu(const SwigluArgs& args, int64_t begin, int64_t end);
void add(const AddArgs& args, int64_t begin, int64_t end);
void softmax(const SoftmaxArgs& args, int64_t begin, int64_t end);
void gemm(const GemmArgs& args, int64_t begin, int64_t end);

// One row of `width` values (a multiple of 32) into the pointers of `row`, which are this row's own.
void quantise_row(const float* x, int64_t width, const ActivationsQ8& row);

// The pointers of row t of activations [T][width].
DW_ALWAYS_INLINE ActivationsQ8 q8_row(const ActivationsQ8& all, int64_t t, int64_t width) {
  const int64_t blocks = width / kQuantBlock;
  return {all.q + t * width, all.d + t * blocks, all.s + t * blocks, all.isum + t * blocks};
}

// The fixed tree over 16 partial sums.
DW_ALWAYS_INLINE float sum_tree(const float (&p)[16]) {
  float s[16];
  for (int i = 0; i < 16; ++i) s[i] = p[i];
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) s[i] = s[i] + s[i + width];
  }
  return s[0];
}

}  // namespace driftwood::kernels::ref
