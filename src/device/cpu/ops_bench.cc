// Speed of single ops on the CPU device. Shapes are SmolLM2-135M's (E 576, F 1536, H 9, Hkv 3, D 64); threads
// and instruction set as DRIFTWOOD_CPU and DRIFTWOOD_BENCH_THREADS say. Figures: GMAC/s and GB/s of weights
// or KV read.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "base/rng.h"
#include "device/cpu/cpu_device.h"

namespace driftwood::device {
namespace {

CpuDevice& bench_device() {
  static const std::unique_ptr<CpuDevice> device = [] {
    const char* threads = std::getenv("DRIFTWOOD_BENCH_THREADS");
    return std::move(*CpuDevice::create({.threads = threads == nullptr ? 0 : std::atoi(threads)}));
  }();
  return *device;
}

std::vector<float> noise(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = random_uniform(seed, 0, i, 0) - 0.5f;
  return values;
}

void count_work(benchmark::State& state, double macs, double bytes) {
  using benchmark::Counter;
  state.counters["GMAC/s"] = Counter(macs * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] = Counter(bytes * 1e-9, Counter::kIsIterationInvariantRate);
}

// range: tokens, keys before the first of them.
void BM_Attention(benchmark::State& state) {
  constexpr int64_t kHeads = 9, kKvHeads = 3, kDim = 64;
  const int64_t tokens = state.range(0);
  const int64_t depth = state.range(1);
  CpuDevice& device = bench_device();
  const auto stream = device.make_stream();
  const int64_t blocks = (depth + tokens + 31) / 32;
  const int64_t half = kKvHeads * kDim * 32 * 2;
  auto pool = std::move(*device.allocate(blocks * 65536));
  std::vector<int32_t> table(blocks);
  for (int64_t i = 0; i < blocks; ++i) table[i] = static_cast<int32_t>(i * 7 % blocks);
  const KvLayer layer{pool->data(), 65536, 0, half, kKvHeads, kDim, DType::kF16};
  std::vector<KvRow> all(depth + tokens);
  for (int64_t t = 0; t < depth + tokens; ++t) all[t] = {table.data(), static_cast<int32_t>(t)};
  const std::vector<float> kv = noise((depth + tokens) * kKvHeads * kDim, 1);
  Status status = device.ops().kv_store(
      *stream, {depth + tokens, all.data(), layer, kv.data(), kKvHeads * kDim, kv.data(), kKvHeads * kDim});
  const std::vector<float> q = noise(tokens * kHeads * kDim, 2);
  std::vector<float> out(tokens * kHeads * kDim);
  const AttentionArgs args{tokens, all.data() + depth, layer,         kHeads,     0.125f,
                           0,      q.data(),           kHeads * kDim, out.data(), {}};
  for (auto _ : state) {
    status = device.ops().attention(*stream, args);
    if (!status.is_ok()) state.SkipWithError(status.message().c_str());
  }
  const double keys = static_cast<double>(tokens) * (depth + (tokens + 1) / 2.0);
  count_work(state, keys * kHeads * kDim * 2, static_cast<double>(depth + tokens) * kKvHeads * kDim * 4);
}
BENCHMARK(BM_Attention)
    ->Args({512, 0})
    ->Args({512, 2048})
    ->Args({1, 128})
    ->Args({1, 2048})
    ->Args({1, 8192})
    ->Args({8, 2048})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// range: tokens, N, K. Q4_1 weights.
void BM_Matmul(benchmark::State& state) {
  const int64_t tokens = state.range(0);
  PackedMatrix w{PackedLayout::kP4H, true, 0, state.range(1), state.range(2), nullptr};
  CpuDevice& device = bench_device();
  const auto stream = device.make_stream();
  auto weights = std::move(*device.allocate(w.size_bytes()));
  for (size_t i = 0; i < w.size_bytes(); ++i) weights->data()[i] = static_cast<uint8_t>(i * 37 & 0x1f);
  w.data = weights->data();
  const std::vector<float> x = noise(tokens * w.cols, 3);
  std::vector<int8_t> q(tokens * w.cols);
  std::vector<float> d(tokens * w.blocks()), s(d.size()), out(tokens * w.rows);
  std::vector<int32_t> isum(d.size());
  const ActivationsQ8 q8{q.data(), d.data(), s.data(), isum.data()};
  Status status = device.ops().quantise(*stream, {tokens, w.cols, x.data(), q8});
  MatmulBatchArgs args{1, {{tokens, w, nullptr, q8, nullptr, out.data(), w.rows}}};
  for (auto _ : state) {
    status = device.ops().matmul(*stream, args);
    if (!status.is_ok()) state.SkipWithError(status.message().c_str());
  }
  count_work(state, static_cast<double>(tokens) * w.rows * w.cols, static_cast<double>(w.size_bytes()));
}
BENCHMARK(BM_Matmul)
    ->Args({1, 576, 576})
    ->Args({1, 1536, 576})
    ->Args({1, 576, 1536})
    ->Args({1, 49152, 576})
    ->Args({512, 576, 576})
    ->Args({512, 1536, 576})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// range: tokens. The rest of a layer.
void BM_SwigluQuantised(benchmark::State& state) {
  const int64_t tokens = state.range(0);
  constexpr int64_t kWidth = 1536;
  CpuDevice& device = bench_device();
  const auto stream = device.make_stream();
  const std::vector<float> both = noise(tokens * kWidth * 2, 4);
  std::vector<int8_t> q(tokens * kWidth);
  std::vector<float> d(tokens * kWidth / 32), s(d.size());
  std::vector<int32_t> isum(d.size());
  const SwigluArgs args{tokens,
                        kWidth,
                        both.data(),
                        both.data() + kWidth,
                        2 * kWidth,
                        nullptr,
                        {q.data(), d.data(), s.data(), isum.data()}};
  for (auto _ : state) {
    if (Status status = device.ops().swiglu(*stream, args); !status.is_ok()) {
      state.SkipWithError(status.message().c_str());
    }
  }
  count_work(state, 0, static_cast<double>(tokens) * kWidth * 8);
}
BENCHMARK(BM_SwigluQuantised)->Arg(1)->Arg(512)->UseRealTime()->Unit(benchmark::kMicrosecond);

void BM_RmsNormQuantised(benchmark::State& state) {
  const int64_t tokens = state.range(0);
  constexpr int64_t kWidth = 576;
  CpuDevice& device = bench_device();
  const auto stream = device.make_stream();
  std::vector<float> x = noise(tokens * kWidth, 5);
  const std::vector<float> residual(tokens * kWidth, 0.0f), weight = noise(kWidth, 6);
  std::vector<int8_t> q(tokens * kWidth);
  std::vector<float> d(tokens * kWidth / 32), s(d.size());
  std::vector<int32_t> isum(d.size());
  const RmsNormArgs args{tokens,        kWidth, x.data(), residual.data(),
                         weight.data(), 1e-5f,  nullptr,  {q.data(), d.data(), s.data(), isum.data()}};
  for (auto _ : state) {
    if (Status status = device.ops().rms_norm(*stream, args); !status.is_ok()) {
      state.SkipWithError(status.message().c_str());
    }
  }
  count_work(state, 0, static_cast<double>(tokens) * kWidth * 8);
}
BENCHMARK(BM_RmsNormQuantised)->Arg(1)->Arg(512)->UseRealTime()->Unit(benchmark::kMicrosecond);

void BM_RopeTable(benchmark::State& state) {
  const int64_t tokens = state.range(0);
  constexpr int64_t kHalf = 32;
  CpuDevice& device = bench_device();
  const auto stream = device.make_stream();
  std::vector<int32_t> positions(tokens);
  for (int64_t t = 0; t < tokens; ++t) positions[t] = static_cast<int32_t>(t);
  const std::vector<float> inv_freq(kHalf, 0.37f);
  std::vector<float> cosine(tokens * kHalf), sine(tokens * kHalf);
  for (auto _ : state) {
    if (Status status = device.ops().rope_table(
            *stream, {tokens, kHalf, positions.data(), inv_freq.data(), 1.0f, cosine.data(), sine.data()});
        !status.is_ok()) {
      state.SkipWithError(status.message().c_str());
    }
  }
}
BENCHMARK(BM_RopeTable)->Arg(1)->Arg(512)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace driftwood::device
BENCHMARK_MAIN();
