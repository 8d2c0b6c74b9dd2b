// gemm: the device multiplies two matrices in this guest's memory, in place; the guest checks every element.
#include <math.h>

#include "driftwood.h"

enum { kSize = 128 };
static float a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];

// One output as docs/numerics.md defines it: one chain of fused multiply-adds, ascending (K is below 512).
static float expected(int row, int column) {
  float sum = 0;
  for (int k = 0; k < kSize; ++k) sum = fmaf(a[row * kSize + k], b[k * kSize + column], sum);
  return sum;
}

DW_ON_START() {
  uint32_t state = 1;
  for (int i = 0; i < kSize * kSize; ++i) {
    state = state * 1664525u + 1013904223u;
    a[i] = (float)(int32_t)(state >> 8) * 0x1p-23f - 1.0f;
    state = state * 1664525u + 1013904223u;
    b[i] = (float)(int32_t)(state >> 8) * 0x1p-23f - 1.0f;
  }
  const dw_gemm_params params = {kSize, kSize, kSize, (uintptr_t)a, kSize, (uintptr_t)b, kSize, (uintptr_t)c, kSize};
  const int64_t begin = dw_clock_ns(DW_CLOCK_MONOTONIC);
  const int32_t result = dw_gemm(&params);
  const int64_t took = dw_clock_ns(DW_CLOCK_MONOTONIC) - begin;
  if (result < 0) return dw_log_failure("gemm");
  int errors = 0;
  for (int i = 0; i < kSize * kSize; ++i) {
    const float want = expected(i / kSize, i % kSize);
    if (memcmp(&c[i], &want, sizeof want) != 0) ++errors;
  }
  dw_buffer json = {NULL, 0, 0};
  dw_buffer_text(&json, "{\"m\":128,\"n\":128,\"k\":128,\"elements\":");
  dw_buffer_integer(&json, kSize * kSize);
  dw_buffer_text(&json, ",\"errors\":");
  dw_buffer_integer(&json, errors);
  dw_buffer_text(&json, ",\"c_offset\":");
  dw_buffer_integer(&json, (int64_t)(uintptr_t)c);
  dw_buffer_text(&json, ",\"microseconds\":");
  dw_buffer_number(&json, (double)took / 1000);
  dw_buffer_text(&json, "}\n");
  dw_emit(json.data, json.length);
  dw_buffer_free(&json);
}
