// swiglu and add.
#include "base/math.h"
#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::ref {

void swiglu(const SwigluArgs& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  for (int64_t t = begin; t < end; ++t) {
    const float* gate = args.gate + t * args.stride;
    const float* up = args.up + t * args.stride;
    for (int64_t start = 0; start < width; start += kQuantBlock) {
      float piece[kQuantBlock];
      const int64_t n = width - start < kQuantBlock ? width - start : kQuantBlock;
      for (int64_t i = 0; i < n; ++i) piece[i] = silu_f32(gate[start + i]) * up[start + i];
      if (args.out != nullptr) std::memcpy(args.out + t * width + start, piece, n * sizeof(float));
      if (args.q8.q != nullptr) quantise_row(piece, n, q8_row(args.q8, t * (width / 32) + start / 32, 32));
    }
  }
}

void add(const AddArgs& args, int64_t begin, int64_t end) {
  const int64_t last = end * kElementPiece < args.count ? end * kElementPiece : args.count;
  for (int64_t i = begin * kElementPiece; i < last; ++i) args.out[i] = args.a[i] + args.b[i];
}

}  // namespace driftwood::kernels::ref
