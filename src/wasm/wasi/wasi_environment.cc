// Arguments, environment, clocks, random numbers and the small rest of WASI.
#include <algorithm>

#include "wasm/wasi/wasi_functions.h"

namespace driftwood::wasm::wasi {
namespace {

constexpr size_t kRandomStepBytes = 64 << 10;

uint64_t total_bytes(const std::vector<std::string>& texts) {
  uint64_t total = 0;
  for (const std::string& text : texts) total += text.size() + 1;
  return total;
}

// A table of pointers at `pointers`, the texts they point to at `buffer`.
Errno put_texts(WasiCall& call, const std::vector<std::string>& texts, uint32_t pointers, uint32_t buffer) {
  const uint64_t bytes = total_bytes(texts);
  if (call.range(pointers, texts.size() * 4) == nullptr) return Errno::kFault;
  if (call.range(buffer, bytes) == nullptr) return Errno::kFault;
  for (const std::string& text : texts) {
    call.store<uint32_t>(pointers, buffer);
    std::memcpy(call.range(buffer, text.size() + 1), text.c_str(), text.size() + 1);
    pointers += 4;
    buffer += static_cast<uint32_t>(text.size() + 1);
  }
  return Errno::kSuccess;
}

Errno put_sizes(WasiCall& call, const std::vector<std::string>& texts, uint32_t count_at, uint32_t bytes_at) {
  const uint64_t bytes = total_bytes(texts);
  if (bytes > UINT32_MAX) return Errno::kOverflow;
  if (call.range(bytes_at, 4) == nullptr || call.range(count_at, 4) == nullptr) return Errno::kFault;
  call.store<uint32_t>(count_at, static_cast<uint32_t>(texts.size()));
  call.store<uint32_t>(bytes_at, static_cast<uint32_t>(bytes));
  return Errno::kSuccess;
}

}  // namespace

Errno args_get(WasiCall& call, const uint64_t* a) { return put_texts(call, call.state().args(), u32(a[0]), u32(a[1])); }
Errno args_sizes_get(WasiCall& call, const uint64_t* a) {
  return put_sizes(call, call.state().args(), u32(a[0]), u32(a[1]));
}
Errno environ_get(WasiCall& call, const uint64_t* a) {
  return put_texts(call, call.state().environment(), u32(a[0]), u32(a[1]));
}
Errno environ_sizes_get(WasiCall& call, const uint64_t* a) {
  return put_sizes(call, call.state().environment(), u32(a[0]), u32(a[1]));
}

Errno clock_res_get(WasiCall& call, const uint64_t* a) {
  if (u32(a[0]) > kClockThreadCpu) return Errno::kInval;
  return call.store<uint64_t>(u32(a[1]), 1) ? Errno::kSuccess : Errno::kFault;
}

Errno clock_time_get(WasiCall& call, const uint64_t* a) {
  if (u32(a[0]) > kClockThreadCpu) return Errno::kInval;
  if (call.range(u32(a[2]), 8) == nullptr) return Errno::kFault;
  call.store<uint64_t>(u32(a[2]), call.state().clock_ns(u32(a[0])));
  return Errno::kSuccess;
}

Errno random_get(WasiCall& call, const uint64_t* a) {
  const uint32_t length = u32(a[1]);
  uint8_t* to = call.range(u32(a[0]), length);
  if (to == nullptr) return Errno::kFault;
  for (size_t done = 0; done < length; done += kRandomStepBytes) {
    if (call.host().end_if_due()) return Errno::kIntr;
    call.state().random({to + done, std::min<size_t>(kRandomStepBytes, length - done)});
  }
  return Errno::kSuccess;
}

Errno sched_yield(WasiCall&, const uint64_t*) { return Errno::kSuccess; }

// There are no signals; the guest that wants to end has proc_exit.
Errno proc_raise(WasiCall&, const uint64_t*) { return Errno::kNotsup; }

Errno not_supported(WasiCall&, const uint64_t*) { return Errno::kNotsup; }

}  // namespace driftwood::wasm::wasi
