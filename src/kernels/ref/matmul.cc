// Matrix product with packed weights, and the plain f32 gemm for guests.
#include "kernels/ref/packed_codes.h"
#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::ref {
namespace {

float quantised_dot(const PackedMatrix& w, int64_t n, const ActivationsQ8& row) {
  constexpr int64_t kSegmentBlocks = kSegment / kQuantBlock;
  const int64_t blocks = w.cols / kQuantBlock;
  float total = 0.0f;
  for (int64_t first = 0; first < blocks; first += kSegmentBlocks) {
    const int64_t last = blocks < first + kSegmentBlocks ? blocks : first + kSegmentBlocks;
    float acc = 0.0f;
    for (int64_t b = first; b < last; ++b) {
      int32_t product = 0;
      for (int64_t k = b * kQuantBlock; k < (b + 1) * kQuantBlock; ++k) {
        product += weight_code(w, n, k) * row.q[k];
      }
      product -= w.zero_point * row.isum[b];
      const float scale = weight_scale(w, n, b) * row.d[b];
      acc = __builtin_fmaf(static_cast<float>(product), scale, acc);
      if (w.has_min) acc = __builtin_fmaf(weight_minimum(w, n, b), row.s[b], acc);
    }
    total = first == 0 ? acc : total + acc;
  }
  return total;
}

// Dense weights, and quantised ones without quantised activations (by their f32 values).
float dense_dot(const PackedMatrix& w, int64_t n, const float* x) {
  float total = 0.0f;
  for (int64_t first = 0; first < w.cols; first += kSegment) {
    const int64_t last = w.cols < first + kSegment ? w.cols : first + kSegment;
    float acc = 0.0f;
    for (int64_t k = first; k < last; ++k) acc = __builtin_fmaf(weight_value(w, n, k), x[k], acc);
    total = first == 0 ? acc : total + acc;
  }
  return total;
}

}  // namespace

void matmul(const MatmulArgs& args, int64_t begin, int64_t end) {
  const PackedMatrix& w = args.weight;
  const bool quantised = is_quantised(w.layout) && args.q8.q != nullptr;
  const int64_t last_row = end * kRowGroup < w.rows ? end * kRowGroup : w.rows;
  for (int64_t n = begin * kRowGroup; n < last_row; ++n) {
    for (int64_t t = 0; t < args.tokens; ++t) {
      float value =
          quantised ? quantised_dot(w, n, q8_row(args.q8, t, w.cols)) : dense_dot(w, n, args.x + t * w.cols);
      if (args.bias != nullptr) value = value + args.bias[n];
      args.out[t * args.out_stride + n] = value;
    }
  }
}

void gemm(const GemmArgs& args, int64_t begin, int64_t end) {
  const int64_t last_row = end * kGemmRows < args.m ? end * kGemmRows : args.m;
  for (int64_t i = begin * kGemmRows; i < last_row; ++i) {
    for (int64_t j = 0; j < args.n; ++j) {
      float total = 0.0f;
      for (int64_t first = 0; first < args.k; first += kSegment) {
        const int64_t last = args.k < first + kSegment ? args.k : first + kSegment;
        float acc = 0.0f;
        for (int64_t k = first; k < last; ++k) {
          acc = __builtin_fmaf(args.a[i * args.lda + k], args.b[k * args.ldb + j], acc);
        }
        total = first == 0 ? acc : total + acc;
      }
      args.c[i * args.ldc + j] = total;
    }
  }
}

}  // namespace driftwood::kernels::ref
