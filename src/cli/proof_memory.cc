#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "actor/solo_guest.h"
#include "cli/embedded_guests.h"
#include "cli/proof.h"
#include "region/region.h"

namespace driftwood::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSide = 128;  // of the matrices
constexpr int kGemmRepeats = 201;
constexpr int kCalls = 2'000'000;
constexpr int64_t kBufferRows = 4096;  // 16 MiB as rows of 1,024 floats
constexpr int64_t kBufferWidth = 1024;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Result<uint64_t> call(actor::SoloGuest& guest, std::string_view name, std::vector<uint64_t> args) {
  DW_ASSIGN_OR_RETURN(const std::vector<uint64_t> results, guest.instance().call(name, args));
  return results.empty() ? 0 : results[0];
}

Result<double> resident_mb() {
  DW_ASSIGN_OR_RETURN(const region::Residency residency, region::process_residency());
  return static_cast<double>(residency.rss_bytes) / 1e6;
}

// A device op over every byte of the buffer.
Status work_on(device::Device& device, device::Stream& stream, uint8_t* buffer) {
  auto* values = reinterpret_cast<float*>(buffer);
  DW_RETURN_IF_ERROR(device.ops().softmax(stream, {kBufferRows, kBufferWidth, values, values}));
  return stream.wait();
}

Status measure_residency(actor::SoloGuest& guest, device::Device& device, uint8_t* buffer, uint64_t bytes,
                         MemoryProof* proof) {
  const std::unique_ptr<device::Stream> stream = device.make_stream();
  // Everything is touched once before measuring, so that only the buffers themselves can differ.
  DW_RETURN_IF_ERROR(call(guest, "probe_touch", {1}).status());
  DW_RETURN_IF_ERROR(device.ops().softmax(
      *stream, {1, kBufferWidth, reinterpret_cast<float*>(buffer), reinterpret_cast<float*>(buffer)}));
  DW_ASSIGN_OR_RETURN(double before, resident_mb());
  DW_ASSIGN_OR_RETURN(before, resident_mb());
  DW_ASSIGN_OR_RETURN(uint8_t* const shared, device.register_host(buffer, bytes));
  proof->region_equals_device = shared == buffer;
  DW_RETURN_IF_ERROR(work_on(device, *stream, shared));
  DW_ASSIGN_OR_RETURN(const double zero_copy, resident_mb());
  DW_RETURN_IF_ERROR(device.unregister_host(buffer));
  DW_ASSIGN_OR_RETURN(const std::unique_ptr<device::Buffer> copy, device.allocate(bytes));
  std::memcpy(copy->data(), buffer, bytes);
  DW_RETURN_IF_ERROR(work_on(device, *stream, copy->data()));
  DW_ASSIGN_OR_RETURN(const double copied, resident_mb());
  proof->rss_zero_copy_mb = std::max(0.0, zero_copy - before);
  proof->rss_copy_mb = copied - zero_copy;
  return Status::ok();
}

Status measure_gemm(actor::SoloGuest& guest, device::Device& device, uint8_t* buffer, MemoryProof* proof) {
  const std::vector<uint64_t> shape = {kSide, kSide, kSide};
  DW_RETURN_IF_ERROR(call(guest, "probe_fill", shape).status());
  std::vector<double> in_place;
  for (int i = 0; i < kGemmRepeats; ++i) {
    const Clock::time_point start = Clock::now();
    DW_ASSIGN_OR_RETURN(const uint64_t result, call(guest, "probe_gemm", shape));
    in_place.push_back(microseconds_since(start));
    if (static_cast<int32_t>(result) < 0) return internal_error("gemm of the probe: " + guest.last_error());
  }
  DW_ASSIGN_OR_RETURN(const uint64_t errors, call(guest, "probe_check", shape));
  proof->gemm_elements = kSide * kSide;
  proof->gemm_errors = static_cast<int32_t>(errors);
  proof->gemm_us = median(in_place);

  const size_t matrix_bytes = size_t{kSide} * kSide * sizeof(float);
  DW_ASSIGN_OR_RETURN(const std::unique_ptr<device::Buffer> memory, device.allocate(3 * matrix_bytes));
  auto* a = reinterpret_cast<float*>(memory->data());
  const std::unique_ptr<device::Stream> stream = device.make_stream();
  std::vector<double> copied;
  for (int i = 0; i < kGemmRepeats; ++i) {
    const Clock::time_point start = Clock::now();
    std::memcpy(memory->data(), buffer, 2 * matrix_bytes);
    DW_RETURN_IF_ERROR(device.ops().gemm(
        *stream, {kSide, kSide, kSide, a, kSide, a + kSide * kSide, kSide, a + 2 * kSide * kSide, kSide}));
    DW_RETURN_IF_ERROR(stream->wait());
    std::memcpy(buffer + 2 * matrix_bytes, memory->data() + 2 * matrix_bytes, matrix_bytes);
    copied.push_back(microseconds_since(start));
  }
  proof->gemm_copy_us = median(copied);
  return Status::ok();
}

// The loop with an empty host call, less the same loop with a call of the guest's own.
Status measure_host_call(actor::SoloGuest& guest, MemoryProof* proof) {
  std::vector<double> samples;
  for (int i = 0; i < 5; ++i) {
    Clock::time_point start = Clock::now();
    DW_RETURN_IF_ERROR(call(guest, "probe_calls", {kCalls}).status());
    const double with_host = microseconds_since(start);
    start = Clock::now();
    DW_RETURN_IF_ERROR(call(guest, "probe_own_calls", {kCalls}).status());
    samples.push_back((with_host - microseconds_since(start)) * 1e3 / kCalls);
  }
  proof->host_call_ns = median(samples);
  return Status::ok();
}

}  // namespace

Result<MemoryProof> prove_memory(ActorHost& host) {
  device::Device& device = *host.opened().device;
  if (device.ops().gemm == nullptr || device.ops().softmax == nullptr) {
    return unimplemented("device " + device.info().name + " has no gemm or softmax; the proof needs both");
  }
  DW_ASSIGN_OR_RETURN(const auto module, host.load_bytes("probe", probe_guest()));
  DW_ASSIGN_OR_RETURN(const auto guest,
                      actor::SoloGuest::create(host.runtime(), module, "probe", {}, nullptr, &device));
  MemoryProof proof;
  proof.device_pointer_is_host_by_nature = device.info().pointers_are_host;
  proof.region_equals_wasm = guest->instance().memory().base() == guest->instance().wasmtime_memory_base();
  DW_ASSIGN_OR_RETURN(const uint64_t offset, call(*guest, "probe_buffer", {}));
  DW_ASSIGN_OR_RETURN(const uint64_t bytes, call(*guest, "probe_buffer_bytes", {}));
  uint8_t* const buffer = guest->instance().bytes(static_cast<uint32_t>(offset), bytes);
  if (buffer == nullptr) return internal_error("the probe's buffer lies outside its memory");
  DW_RETURN_IF_ERROR(measure_residency(*guest, device, buffer, bytes, &proof));
  DW_RETURN_IF_ERROR(measure_gemm(*guest, device, buffer, &proof));
  DW_RETURN_IF_ERROR(measure_host_call(*guest, &proof));
  return proof;
}

}  // namespace driftwood::cli
