// Device: the narrow seam between the runtime and one backend (CPU, CUDA, Metal, null).
//
// A device gives memory, streams and a table of operations. Nothing above this header names a backend; only
// src/cli composes concrete ones, through the registry (registry.h).
//
// Threads: a Device may be shared by threads; a Stream belongs to one thread at a time.
// Errors: an op enqueues and reports bad arguments at once; a device fault is stored in the stream before its
// event is signalled, sticks, and comes back from wait().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "tensor/op_args.h"

namespace driftwood::device {

struct DeviceInfo {
  std::string name;         // "cpu"
  std::string description;  // "AVX2, 2 threads"
  std::string isa;          // "ref", "avx2", "avxvnni", "avx512", "neon", "sm90", ...
  std::string numerics_id;  // "portable-1" (DESIGN 4.3)
  bool pointers_are_host;   // true: the device pointer of any host byte is its host pointer by nature
  int threads = 1;
};

class Stream;

// One slot per op of op_args.h. A null slot means "not supported by this backend".
struct OpTable {
  Status (*embed)(Stream&, const EmbedArgs&) = nullptr;
  Status (*rms_norm)(Stream&, const RmsNormArgs&) = nullptr;
  Status (*quantise)(Stream&, const QuantiseArgs&) = nullptr;
  Status (*matmul)(Stream&, const MatmulBatchArgs&) = nullptr;
  Status (*rope_table)(Stream&, const RopeTableArgs&) = nullptr;
  Status (*rope)(Stream&, const RopeArgs&) = nullptr;
  Status (*kv_store)(Stream&, const KvStoreArgs&) = nullptr;
  Status (*attention)(Stream&, const AttentionArgs&) = nullptr;
  Status (*swiglu)(Stream&, const SwigluArgs&) = nullptr;
  Status (*add)(Stream&, const AddArgs&) = nullptr;
  Status (*softmax)(Stream&, const SoftmaxArgs&) = nullptr;
  Status (*gemm)(Stream&, const GemmArgs&) = nullptr;
};

class Device;

class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device& device() = 0;
  // Blocks until everything enqueued has finished; returns the first fault, again on every later call.
  virtual Status wait() = 0;
};

// Device memory, freed with the handle. data() is a device pointer (host-usable where pointers_are_host).
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual uint8_t* data() = 0;
  virtual size_t size_bytes() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual const OpTable& ops() const = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;

  // 64-byte aligned, zero-filled memory.
  virtual Result<std::unique_ptr<Buffer>> allocate(size_t size_bytes) = 0;

  // Makes host bytes [base, base + size) usable by the device without a copy and returns their device pointer
  // (equal to base on every backend we accept, DESIGN 4.1). Undo with unregister_host before unmapping.
  virtual Result<uint8_t*> register_host(void* base, size_t size_bytes) = 0;
  virtual Status unregister_host(void* base) = 0;
};

}  // namespace driftwood::device
