// rms_norm and softmax: the two operations that reduce a row.
#include "base/math.h"
#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::ref {
namespace {

float sum_of_squares(const float* x, int64_t width) {
  float p[16] = {};
  for (int64_t i = 0; i < width; ++i) p[i % 16] = __builtin_fmaf(x[i], x[i], p[i % 16]);
  return sum_tree(p);
}

}  // namespace

void rms_norm(const RmsNormArgs& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  for (int64_t t = begin; t < end; ++t) {
    float* x = args.x + t * width;
    if (args.residual != nullptr) {
      for (int64_t i = 0; i < width; ++i) x[i] = x[i] + args.residual[t * width + i];
    }
    const float mean = sum_of_squares(x, width) / static_cast<float>(width);
    const float r = 1.0f / __builtin_sqrtf(mean + args.epsilon);
    for (int64_t start = 0; start < width; start += kQuantBlock) {
      float piece[kQuantBlock];
      const int64_t n = width - start < kQuantBlock ? width - start : kQuantBlock;
      for (int64_t i = 0; i < n; ++i) piece[i] = (x[start + i] * r) * args.weight[start + i];
      if (args.out != nullptr) std::memcpy(args.out + t * width + start, piece, n * sizeof(float));
      if (args.q8.q != nullptr) quantise_row(piece, n, q8_row(args.q8, t * (width / 32) + start / 32, 32));
    }
  }
}

void softmax(const SoftmaxArgs& args, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const float* x = args.x + t * args.width;
    float* out = args.out + t * args.width;
    float m = -__builtin_inff();
    for (int64_t i = 0; i < args.width; ++i) m = x[i] > m ? x[i] : m;
    float p[16] = {};
    for (int64_t i = 0; i < args.width; ++i) {
      out[i] = exp_f32(x[i] - m);
      p[i % 16] = p[i % 16] + out[i];
    }
    const float sum = sum_tree(p);
    for (int64_t i = 0; i < args.width; ++i) out[i] = out[i] / sum;
  }
}

}  // namespace driftwood::kernels::ref
