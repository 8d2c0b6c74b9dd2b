// Activations to int8 in blocks of 32.
#include "base/math.h"
#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::ref {
namespace {

void quantise_block(const float* x, int8_t* q, float* d, float* s, int32_t* isum) {
  float amax = 0.0f;
  for (int i = 0; i < kQuantBlock; ++i) {
    const float magnitude = __builtin_fabsf(x[i]);
    amax = magnitude > amax ? magnitude : amax;
  }
  *isum = 0;
  if (amax < 1e-30f) {
    for (int i = 0; i < kQuantBlock; ++i) q[i] = 0;
    *d = 0.0f;
    *s = 0.0f;
    return;
  }
  *d = amax / 127.0f;
  const float inverse = 127.0f / amax;
  for (int i = 0; i < kQuantBlock; ++i) {
    float r = round_even_f32(x[i] * inverse);
    r = r > -127.0f ? r : -127.0f;
    r = r < 127.0f ? r : 127.0f;
    q[i] = static_cast<int8_t>(r);
    *isum += q[i];
  }
  *s = *d * static_cast<float>(*isum);
}

}  // namespace

void quantise_row(const float* x, int64_t width, const ActivationsQ8& row) {
  for (int64_t b = 0; b < width / kQuantBlock; ++b) {
    quantise_block(x + b * kQuantBlock, row.q + b * kQuantBlock, row.d + b, row.s + b, row.isum + b);
  }
}

void quantise(const QuantiseArgs& args, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    quantise_row(args.x + t * args.width, args.width, q8_row(args.q8, t, args.width));
  }
}

}  // namespace driftwood::kernels::ref
