// probe: what `driftwood proof` asks a guest to do: empty host calls, and a large buffer that guest and device share.
#include <math.h>

#include "driftwood.h"

enum { kBufferBytes = 16 << 20, kPage = 4096 };
static _Alignas(65536) uint8_t buffer[kBufferBytes];

// `count` empty host calls; the sum keeps them from being dropped.
DW_HANDLER(probe_calls) int64_t probe_calls(int32_t count) {
  int64_t sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += dw_abi_version();
  return sum;
}

// The same loop over a function of the guest's own, to subtract.
__attribute__((noinline)) static int32_t own_version(void) {
  __asm__ volatile("");
  return DW_ABI_VERSION;
}
DW_HANDLER(probe_own_calls) int64_t probe_own_calls(int32_t count) {
  int64_t sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += own_version();
  return sum;
}

DW_HANDLER(probe_buffer) int32_t probe_buffer(void) { return (int32_t)(uintptr_t)buffer; }
DW_HANDLER(probe_buffer_bytes) int32_t probe_buffer_bytes(void) { return kBufferBytes; }

// Writes one byte of every page; returns the pages.
DW_HANDLER(probe_touch) int32_t probe_touch(int32_t value) {
  for (int32_t i = 0; i < kBufferBytes; i += kPage) buffer[i] = (uint8_t)value;
  return kBufferBytes / kPage;
}

DW_HANDLER(probe_sum) int64_t probe_sum(void) {
  int64_t sum = 0;
  for (int32_t i = 0; i < kBufferBytes; ++i) sum += buffer[i];
  return sum;
}

static float* at(int64_t element) { return (float*)buffer + element; }

// Fills A[m,k] and B[k,n] at the buffer's start, C[m,n] behind them. A negative result: they do not fit.
DW_HANDLER(probe_fill) int32_t probe_fill(int32_t m, int32_t n, int32_t k) {
  const int64_t elements = (int64_t)m * k + (int64_t)k * n + (int64_t)m * n;
  if (m < 0 || n < 0 || k < 0 || elements * 4 > kBufferBytes) return DW_E_INVALID_ARGUMENT;
  uint32_t state = 7;
  for (int64_t i = 0; i < (int64_t)m * k + (int64_t)k * n; ++i) {
    state = state * 1664525u + 1013904223u;
    *at(i) = (float)(int32_t)(state >> 8) * 0x1p-23f - 1.0f;
  }
  return 0;
}

// C by the device; returns its offset, or an error code.
DW_HANDLER(probe_gemm) int32_t probe_gemm(int32_t m, int32_t n, int32_t k) {
  const uint64_t base = (uintptr_t)buffer;
  const uint64_t b = base + (uint64_t)m * k * 4, c = b + (uint64_t)k * n * 4;
  const dw_gemm_params params = {(uint64_t)m, (uint64_t)n, (uint64_t)k, base, (uint64_t)k,
                                 b,           (uint64_t)n, c,           (uint64_t)n};
  const int32_t result = dw_gemm(&params);
  return result < 0 ? result : (int32_t)c;
}

// Elements of C whose bits differ from the guest's own computation (docs/numerics.md: segments of 512).
DW_HANDLER(probe_check) int32_t probe_check(int32_t m, int32_t n, int32_t k) {
  enum { kSegment = 512 };
  const float* a = at(0);
  const float* b = at((int64_t)m * k);
  const float* c = at((int64_t)m * k + (int64_t)k * n);
  int32_t errors = 0;
  for (int32_t i = 0; i < m; ++i) {
    for (int32_t j = 0; j < n; ++j) {
      float total = 0;
      for (int32_t begin = 0; begin < k; begin += kSegment) {
        const int32_t end = begin + kSegment < k ? begin + kSegment : k;
        float sum = 0;
        for (int32_t l = begin; l < end; ++l) sum = fmaf(a[i * k + l], b[l * n + j], sum);
        total = begin == 0 ? sum : total + sum;
      }
      if (memcmp(&total, &c[i * n + j], sizeof total) != 0) ++errors;
    }
  }
  return errors;
}

// As an actor it says in one line of JSON what it found.
DW_ON_START() {
  enum { kCalls = 1000000 };
  const int64_t t0 = dw_clock_ns(DW_CLOCK_MONOTONIC);
  const int64_t sum = probe_calls(kCalls);
  const int64_t t1 = dw_clock_ns(DW_CLOCK_MONOTONIC);
  probe_own_calls(kCalls);
  const int64_t t2 = dw_clock_ns(DW_CLOCK_MONOTONIC);
  dw_buffer json = {NULL, 0, 0};
  dw_buffer_text(&json, "{\"abi_version\":");
  dw_buffer_integer(&json, sum / kCalls);
  dw_buffer_text(&json, ",\"host_call_ns\":");
  dw_buffer_number(&json, (double)(t1 - t0) / kCalls);
  dw_buffer_text(&json, ",\"own_call_ns\":");
  dw_buffer_number(&json, (double)(t2 - t1) / kCalls);
  probe_fill(128, 128, 128);
  const int32_t c = probe_gemm(128, 128, 128);
  dw_buffer_text(&json, ",\"buffer_offset\":");
  dw_buffer_integer(&json, probe_buffer());
  dw_buffer_text(&json, ",\"gemm_c_offset\":");
  dw_buffer_integer(&json, c);
  dw_buffer_text(&json, ",\"gemm_errors\":");
  dw_buffer_integer(&json, c < 0 ? c : probe_check(128, 128, 128));
  dw_buffer_text(&json, "}\n");
  dw_emit(json.data, json.length);
  dw_buffer_free(&json);
}
