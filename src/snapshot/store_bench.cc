// What saving, saving again, loading and verifying cost in a store, beside plain writes and flushes of the
// same bytes.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>
#include <vector>

#include "os/atomic_file.h"
#include "snapshot/container.h"
#include "snapshot/store.h"

namespace driftwood::snapshot {
namespace {

std::string bench_path() { return (std::filesystem::temp_directory_path() / "dw_store_bench").string(); }

// KV blocks and memory pages of 64 KiB (a quarter of the pages is not zero), and eight small sections.
struct Contents {
  std::vector<uint8_t> kv;
  std::vector<uint8_t> memory;
  std::vector<uint8_t> small = std::vector<uint8_t>(1000, 1);
  SnapshotContents snapshot;

  Contents(int64_t blocks, int64_t pages)
      : kv(static_cast<size_t>(blocks) * kUnitBytes), memory(static_cast<size_t>(pages) * kUnitBytes) {
    uint32_t x = 1;
    for (uint8_t& b : kv) b = static_cast<uint8_t>((x = x * 1664525U + 1013904223U) >> 24);
    std::copy(kv.begin(), kv.begin() + static_cast<std::ptrdiff_t>(std::min(kv.size(), memory.size() / 4)),
              memory.begin());
    for (size_t i = 0; i < memory.size() / 4; i += kUnitBytes) memory[i] ^= 1;
    SectionTensor k{{"blocks", DType::kF16, {blocks, 32768}, "[block][value]", kUnitBytes}, {kv}, {}};
    SectionTensor m{{"pages", DType::kU8, {pages, 65536}, "[page][byte]", kUnitBytes}, {memory}, {}};
    snapshot.sections = {{{"session.0", "session", {}}, {k}}, {{"memory", "linear_memory", {}}, {m}}};
    for (int i = 0; i < 8; ++i) {
      SectionTensor t{{"bytes", DType::kU8, {1000}, "[byte]"}, {small}, {}};
      snapshot.sections.push_back({{"small." + std::to_string(i), "small", {}}, {t}});
    }
  }
  void set_known(const SaveReport& report) {
    snapshot.sections[0].tensors[0].known = report.digests.at("session.0.blocks");
    snapshot.sections[1].tensors[0].known = report.digests.at("memory.pages");
  }
};

std::unique_ptr<Store> fresh_store(int threads) {
  std::filesystem::remove_all(bench_path());
  auto store = Store::open(bench_path(), {true, false, threads});
  return store.is_ok() ? std::move(*store) : nullptr;
}

void plain_write(benchmark::State& state) {
  const Contents contents(state.range(0), 16);
  std::filesystem::remove_all(bench_path());
  for (auto _ : state) {
    if (!os::write_file_atomically(bench_path(), contents.kv, os::FileAccess::kPrivate).is_ok()) {
      state.SkipWithError("the file cannot be written");
    }
    state.PauseTiming();
    std::filesystem::remove(bench_path());
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(contents.kv.size()));
}

void save(benchmark::State& state) {
  const Contents contents(state.range(0), 16);
  for (auto _ : state) {
    state.PauseTiming();
    auto store = fresh_store(static_cast<int>(state.range(1)));
    state.ResumeTiming();
    if (!store->save(contents.snapshot, "a").is_ok()) state.SkipWithError("the snapshot cannot be saved");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(contents.kv.size()));
  std::filesystem::remove_all(bench_path());
}

// One changed block each time.
void save_again(benchmark::State& state) {
  Contents contents(state.range(0), 16);
  auto store = fresh_store(2);
  auto report = store->save(contents.snapshot, "a");
  uint64_t written = 0;
  for (auto _ : state) {
    contents.set_known(*report);
    contents.kv[5 * kUnitBytes] += 1;
    contents.kv[5 * kUnitBytes + 1] ^= contents.kv[5 * kUnitBytes];
    contents.snapshot.sections[0].tensors[0].known[5] = {};
    ++contents.snapshot.origin.created_ns;
    report = store->save(contents.snapshot, "a");
    if (!report.is_ok()) state.SkipWithError("the snapshot cannot be saved");
    written = report->bytes_written;
  }
  state.counters["bytes_written"] = static_cast<double>(written);
  std::filesystem::remove_all(bench_path());
}

void load(benchmark::State& state) {
  const Contents contents(state.range(0), state.range(1));
  auto store = fresh_store(2);
  if (!store->save(contents.snapshot, "a").is_ok()) state.SkipWithError("the snapshot cannot be saved");
  for (auto _ : state) {
    auto loaded = store->load("a", state.range(2) != 0 ? Verify::kFull : Verify::kIfTouched);
    if (!loaded.is_ok()) state.SkipWithError("the snapshot cannot be loaded");
    benchmark::DoNotOptimize(loaded);
  }
  if (state.range(2) != 0) {
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(contents.kv.size()));
  }
  std::filesystem::remove_all(bench_path());
}

// Blocks: a short session, and the bytes of 4,096 tokens of the default model (94 MB).
BENCHMARK(plain_write)->Arg(24)->Arg(1440)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(save)
    ->Args({24, 2})
    ->Args({1440, 1})
    ->Args({1440, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(save_again)->Arg(24)->Arg(1440)->Unit(benchmark::kMillisecond)->UseRealTime();
// Blocks, pages, verified in full.
BENCHMARK(load)
    ->Args({128, 16, 0})
    ->Args({128, 4096, 0})
    ->Args({1440, 16, 0})
    ->Args({1440, 16, 1})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace
}  // namespace driftwood::snapshot

BENCHMARK_MAIN();
