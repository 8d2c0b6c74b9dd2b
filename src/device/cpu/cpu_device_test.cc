#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "os/cpu_features.h"

namespace driftwood::device {
namespace {

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    setenv(name, value, 1);
  }
  ~ScopedVariable() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  bool had_ = false;
  std::string before_;
};

TEST(CpuDevice, TellsWhatItIs) {
  const auto device = CpuDevice::create({.threads = 2, .isa = "ref"});
  ASSERT_TRUE(device.is_ok());
  const DeviceInfo& info = (*device)->info();
  EXPECT_EQ(info.name, "cpu");
  EXPECT_EQ(info.description, "ref, 2 threads");
  EXPECT_EQ(info.numerics_id, "portable-1");
  EXPECT_EQ(info.threads, 2);
  EXPECT_TRUE(info.pointers_are_host);
}

TEST(CpuDevice, DefaultsToOneThreadPerCore) {
  const auto device = CpuDevice::create({});
  ASSERT_TRUE(device.is_ok());
  EXPECT_EQ((*device)->info().threads, std::min(os::usable_cores(), kMaxThreads));
}

TEST(CpuDevice, TheEnvironmentPicksTheKernelsUnlessTheCallerDoes) {
  const ScopedVariable forced("DRIFTWOOD_CPU", "ref");
  EXPECT_EQ((*CpuDevice::create({.threads = 1}))->info().isa, "ref");
  const ScopedVariable wrong("DRIFTWOOD_CPU", "sse9");
  const auto device = CpuDevice::create({.threads = 1});
  ASSERT_FALSE(device.is_ok());
  EXPECT_EQ(device.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(device.status().message().rfind("DRIFTWOOD_CPU 'sse9' is not one of ", 0), 0u);
  EXPECT_TRUE(CpuDevice::create({.threads = 1, .isa = "ref"}).is_ok());
}

TEST(CpuDevice, AnInstructionSetTheProcessorLacksIsNamed) {
  for (const kernels::TableEntry& entry : kernels::built_tables()) {
    const char* missing = nullptr;
    for (const char* feature : entry.features) {
      if (missing == nullptr && !os::cpu_has(feature)) missing = feature;
    }
    const auto device = CpuDevice::create({.threads = 1, .isa = entry.isa});
    EXPECT_EQ(device.is_ok(), missing == nullptr);
    if (missing != nullptr) {
      EXPECT_EQ(device.status().code(), Code::kFailedPrecondition);
      EXPECT_NE(device.status().message().find(missing), std::string::npos);
    }
  }
}

TEST(CpuDevice, RefusesThreadCounts) {
  EXPECT_EQ(CpuDevice::create({.threads = -1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(CpuDevice::create({.threads = 256}).status().code(), Code::kInvalidArgument);
}

TEST(CpuDevice, BuffersAreAlignedAndZero) {
  const auto device = std::move(*CpuDevice::create({.threads = 1}));
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{1} << 20}) {
    const auto buffer = std::move(*device->allocate(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    ASSERT_EQ(buffer->size_bytes(), size);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(buffer->data()[i], 0);
  }
  EXPECT_EQ(device->allocate(SIZE_MAX).status().code(), Code::kResourceExhausted);
}

TEST(CpuDevice, HostMemoryKeepsItsAddress) {
  const auto device = std::move(*CpuDevice::create({.threads = 1}));
  alignas(64) uint8_t bytes[64];
  EXPECT_EQ(*device->register_host(bytes, sizeof(bytes)), bytes);
  EXPECT_TRUE(device->unregister_host(bytes).is_ok());
  EXPECT_EQ(device->register_host(nullptr, 64).status().code(), Code::kInvalidArgument);
}

// Bad arguments come back as invalid_argument and name op and field; nothing is written.
TEST(CpuDevice, ChecksArguments) {
  const auto device = std::move(*CpuDevice::create({.threads = 1}));
  const auto stream = device->make_stream();
  const OpTable& ops = device->ops();
  alignas(64) float x[64] = {};
  alignas(64) float out[64];
  std::fill(std::begin(out), std::end(out), -1.0f);
  auto expect = [&](const Status& status, const char* message) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
  };
  expect(ops.add(*stream, {4, nullptr, x, out}), "add: a is null or unaligned");
  expect(ops.add(*stream, {-1, x, x, out}), "add: the count is negative");
  expect(ops.softmax(*stream, {1, 0, x, out}), "softmax: the width is not positive");
  int8_t q[64];
  int32_t isum[2];
  expect(ops.quantise(*stream, {1, 33, x, {q, out, out, isum}}),
         "quantise: the width is no multiple of 32, so the row cannot be quantised");
  expect(ops.rms_norm(*stream, {1, 64, x, x, x, 0.0f, x, {}}),
         "rms_norm: out may not be x when there is a residual");
  MatmulBatchArgs batch{
      1,
      {{1, {PackedLayout::kP4H, false, 8, 16, 33, reinterpret_cast<uint8_t*>(x)}, x, {}, nullptr, out, 16}}};
  expect(ops.matmul(*stream, batch), "matmul: a quantised weight's columns are no multiple of 32");
  batch.parts[0].weight.cols = 32;
  batch.parts[0].weight.data += 4;
  expect(ops.matmul(*stream, batch), "matmul: weight data is null or not 64-byte aligned");
  batch.count = 5;
  expect(ops.matmul(*stream, batch), "matmul: a batch has 1 to 4 parts");
  KvRow row{isum, 0};
  KvLayer layer{reinterpret_cast<uint8_t*>(x), 64, 0, 0, 1, 513, DType::kF16};
  expect(ops.attention(*stream, {1, &row, layer, 1, 1.0f, 0, x, 513, out, {}}),
         "attention: head_dim is outside 1..512");
  layer.head_dim = 8;
  layer.dtype = DType::kBF16;
  expect(ops.kv_store(*stream, {1, &row, layer, x, 8, x, 8}), "kv_store: the KV type is neither F16 nor F32");
  layer.dtype = DType::kF16;
  layer.kv_heads = 2;
  expect(ops.attention(*stream, {1, &row, layer, 3, 1.0f, 0, x, 24, out, {}}),
         "attention: heads is no multiple of kv_heads");
  expect(ops.gemm(*stream, {1, 2, 3, x, 2, x, 2, out, 2}), "gemm: a stride is smaller than a row");
  for (float value : out) EXPECT_EQ(value, -1.0f);
}

TEST(CpuDevice, StreamsOfSeveralThreadsShareThePool) {
  const auto device = std::move(*CpuDevice::create({.threads = 3, .wake_ns = 0}));
  auto work = [&](float value) {
    const auto stream = device->make_stream();
    std::vector<float> a(20'000, value);
    std::vector<float> b(20'000, 1.0f);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(device->ops().add(*stream, {20'000, a.data(), b.data(), a.data()}).is_ok());
    }
    for (float x : a) ASSERT_EQ(x, value + 100.0f);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, static_cast<float>(i));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace driftwood::device
