// CpuDevice: the kernels of src/kernels behind the Device seam, on a pool of threads.
//
// Ops run to completion inside the call: an op's result is there when it returns, wait() has nothing to wait
// for. Every op is cut into units by a rule of shapes only and each unit's arithmetic does not depend on the
// cut, so any thread count gives the same bits (portable-1, docs/numerics.md). Ops too small to be worth a
// signal run on the caller alone. Streams of several threads share the pool and take turns; small ops of
// different streams overlap.
//
// Steady state: no allocation, lock or system call in an op. Attention partials live in a buffer of the
// stream that only grows. Arguments are checked (null pointers, sizes, K % 32, alignment): invalid_argument,
// and nothing is written. Contents (token ids, block ids, positions) are the caller's duty.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cpu/worker_pool.h"
#include "device/device.h"
#include "kernels/kernel_table.h"

namespace driftwood::device {

struct CpuOptions {
  int threads = 0;  // 0: one per usable physical core
  std::string
      isa;  // "ref", "avx2", "avxvnni", "avx512", "neon"; "": DRIFTWOOD_CPU, else the best this processor has
  double wake_ns =
      2000.0;  // estimated work that is worth one more worker; 0 (tests): wake all of them always
  const kernels::KernelTable* table = nullptr;  // kernels of one's own instead of isa (tests)
};

class CpuDevice final : public Device {
 public:
  // invalid_argument: unknown isa or a thread count outside 1..255. failed_precondition: the processor lacks
  // a feature of the isa that was asked for; the message names it.
  static Result<std::unique_ptr<CpuDevice>> create(const CpuOptions& options);

  const DeviceInfo& info() const override { return info_; }
  const OpTable& ops() const override;
  std::unique_ptr<Stream> make_stream() override;
  Result<std::unique_ptr<Buffer>> allocate(size_t size_bytes) override;
  Result<uint8_t*> register_host(void* base, size_t size_bytes) override;
  Status unregister_host(void* base) override;

  const kernels::KernelTable& table() const { return table_; }
  WorkerPool& pool() { return pool_; }
  double wake_ns() const { return wake_ns_; }

 private:
  CpuDevice(const kernels::KernelTable& table, int threads, double wake_ns);

  const kernels::KernelTable& table_;
  WorkerPool pool_;
  double wake_ns_;
  DeviceInfo info_;
};

// Belongs to one thread at a time, and to its device.
class CpuStream final : public Stream {
 public:
  explicit CpuStream(CpuDevice& device) : device_(device) {}
  Device& device() override { return device_; }
  Status wait() override { return Status::ok(); }

  CpuDevice& cpu() { return device_; }
  // At least `count` floats, valid until the next call.
  float* partials(size_t count) {
    if (partials_.size() < count) partials_.resize(count);
    return partials_.data();
  }

 private:
  CpuDevice& device_;
  std::vector<float> partials_;
};

}  // namespace driftwood::device
