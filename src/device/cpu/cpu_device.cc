#include "device/cpu/cpu_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "device/cpu/cpu_ops.h"
#include "os/cpu_features.h"

namespace driftwood::device {
namespace {

constexpr size_t kBufferAlignment = 64;

class HostBuffer final : public Buffer {
 public:
  HostBuffer(void* memory, size_t size_bytes) : memory_(memory), size_bytes_(size_bytes) {}
  ~HostBuffer() override { std::free(memory_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  uint8_t* data() override {
    const auto address = reinterpret_cast<uintptr_t>(memory_);
    return reinterpret_cast<uint8_t*>((address + kBufferAlignment - 1) & ~(kBufferAlignment - 1));
  }
  size_t size_bytes() const override { return size_bytes_; }

 private:
  void* memory_;
  size_t size_bytes_;
};

// The first feature this processor lacks, or null.
const char* missing_feature(const kernels::TableEntry& entry) {
  for (const char* feature : entry.features) {
    if (!os::cpu_has(feature)) return feature;
  }
  return nullptr;
}

Result<const kernels::KernelTable*> choose_table(std::string isa) {
  std::string origin = "CPU isa";
  if (isa.empty()) {
    if (const char* forced = std::getenv("DRIFTWOOD_CPU"); forced != nullptr && *forced != '\0') {
      isa = forced;
      origin = "DRIFTWOOD_CPU";
    }
  }
  std::string known;
  for (const kernels::TableEntry& entry : kernels::built_tables()) {
    known += (known.empty() ? "" : ", ") + std::string(entry.isa);
    const char* missing = missing_feature(entry);
    if (isa.empty() && missing == nullptr) return &entry.table();
    if (isa != entry.isa) continue;
    if (missing == nullptr) return &entry.table();
    return failed_precondition(origin + " '" + isa + "': this processor has no " + missing);
  }
  return invalid_argument(origin + " '" + isa + "' is not one of " + known);
}

}  // namespace

Result<std::unique_ptr<CpuDevice>> CpuDevice::create(const CpuOptions& options) {
  const kernels::KernelTable* table = options.table;
  if (table == nullptr) {
    DW_ASSIGN_OR_RETURN(table, choose_table(options.isa));
  }
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return invalid_argument("thread count " + std::to_string(options.threads) + " is outside 1.." +
                            std::to_string(kMaxThreads));
  }
  const int threads = options.threads > 0 ? options.threads : std::min(os::usable_cores(), kMaxThreads);
  return std::unique_ptr<CpuDevice>(new CpuDevice(*table, threads, options.wake_ns));
}

CpuDevice::CpuDevice(const kernels::KernelTable& table, int threads, double wake_ns)
    : table_(table), pool_(threads), wake_ns_(wake_ns) {
  info_.name = "cpu";
  info_.description =
      std::string(table.isa) + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  info_.isa = table.isa;
  info_.numerics_id = "portable-1";
  info_.pointers_are_host = true;
  info_.threads = threads;
}

const OpTable& CpuDevice::ops() const { return cpu_op_table(); }

std::unique_ptr<Stream> CpuDevice::make_stream() { return std::make_unique<CpuStream>(*this); }

Result<std::unique_ptr<Buffer>> CpuDevice::allocate(size_t size_bytes) {
  // calloc: large sizes come zeroed from the system and are not touched before their first use.
  void* memory =
      size_bytes > SIZE_MAX - kBufferAlignment ? nullptr : std::calloc(size_bytes + kBufferAlignment, 1);
  if (memory == nullptr)
    return resource_exhausted("cannot allocate " + std::to_string(size_bytes) + " bytes");
  return std::unique_ptr<Buffer>(std::make_unique<HostBuffer>(memory, size_bytes));
}

Result<uint8_t*> CpuDevice::register_host(void* base, size_t size_bytes) {
  if (base == nullptr || size_bytes == 0) return invalid_argument("register_host: an empty range");
  return static_cast<uint8_t*>(base);
}

Status CpuDevice::unregister_host(void* base) {
  return base == nullptr ? invalid_argument("unregister_host: a null range") : Status::ok();
}

}  // namespace driftwood::device
