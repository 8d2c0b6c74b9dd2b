// Rotary position embedding: the table of angles, and the rotation.
#include "base/math.h"
#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::ref {

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

void rope(const RopeArgs& args, int64_t begin, int64_t end) {
  const bool halves = args.style == RopeStyle::kHalf;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t h = 0; h < args.heads; ++h) {
      float* x = args.x + t * args.stride + h * args.head_dim;
      for (int64_t i = 0; i < args.half; ++i) {
        const int64_t first = halves ? i : 2 * i;
        const int64_t second = halves ? i + args.half : 2 * i + 1;
        const float c = args.cosine[t * args.half + i];
        const float s = args.sine[t * args.half + i];
        const float a = x[first];
        const float b = x[second];
        x[first] = __builtin_fmaf(-b, s, a * c);
        x[second] = __builtin_fmaf(a, s, b * c);
      }
    }
  }
}

}  // namespace driftwood::kernels::ref
