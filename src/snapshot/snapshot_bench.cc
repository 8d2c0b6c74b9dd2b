// What writing, opening and verifying a snapshot cost, beside plain writes and flushes of the same bytes.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>
#include <vector>

#include "os/atomic_file.h"
#include "snapshot/container.h"
#include "snapshot/reader.h"
#include "snapshot/writer.h"

namespace driftwood::snapshot {
namespace {

std::string bench_path() { return (std::filesystem::temp_directory_path() / "dw_snapshot_bench").string(); }

// `units` KV blocks of 64 KiB, hashed one by one, and eight small sections.
struct Contents {
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> small = std::vector<uint8_t>(1000, 1);
  SnapshotContents snapshot;
  explicit Contents(int64_t units) : bytes(static_cast<size_t>(units) * kUnitBytes) {
    uint32_t x = 1;
    for (uint8_t& b : bytes) b = static_cast<uint8_t>((x = x * 1664525U + 1013904223U) >> 24);
    SectionTensor kv{{"blocks", DType::kF16, {units, 32768}, "[block][value]", kUnitBytes}, {bytes}};
    snapshot.sections.push_back({{"session.0", "session", {}}, {kv}});
    for (int i = 0; i < 8; ++i) {
      SectionTensor t{{"bytes", DType::kU8, {1000}, "[byte]"}, {small}};
      snapshot.sections.push_back({{"small." + std::to_string(i), "small", {}}, {t}});
    }
  }
};

void write(benchmark::State& state) {
  const Contents contents(state.range(0));
  for (auto _ : state) {
    if (!write_snapshot(bench_path(), contents.snapshot, static_cast<int>(state.range(1))).is_ok()) {
      state.SkipWithError("the snapshot cannot be written");
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(contents.bytes.size()));
  std::filesystem::remove(bench_path());
}

void plain_write(benchmark::State& state) {
  const Contents contents(state.range(0));
  for (auto _ : state) {
    if (!os::write_file_atomically(bench_path(), contents.bytes, os::FileAccess::kPrivate).is_ok()) {
      state.SkipWithError("the file cannot be written");
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(contents.bytes.size()));
  std::filesystem::remove(bench_path());
}

void open(benchmark::State& state) {
  const Contents contents(state.range(0));
  if (!write_snapshot(bench_path(), contents.snapshot).is_ok()) {
    state.SkipWithError("the snapshot cannot be written");
    return;
  }
  for (auto _ : state) {
    if (!Snapshot::open(bench_path()).is_ok()) state.SkipWithError("the snapshot cannot be opened");
  }
  std::filesystem::remove(bench_path());
}

void verify(benchmark::State& state) {
  const Contents contents(state.range(0));
  if (!write_snapshot(bench_path(), contents.snapshot).is_ok()) {
    state.SkipWithError("the snapshot cannot be written");
    return;
  }
  const auto snapshot = Snapshot::open(bench_path());
  for (auto _ : state) {
    if (!(*snapshot)->verify_contents(static_cast<int>(state.range(1))).is_ok()) {
      state.SkipWithError("the snapshot is damaged");
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(contents.bytes.size()));
  std::filesystem::remove(bench_path());
}

// Units: a short session, and the bytes of 4,096 tokens of the default model (94 MB).
BENCHMARK(plain_write)->Arg(24)->Arg(1440)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(write)
    ->Args({24, 1})
    ->Args({1440, 1})
    ->Args({1440, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(open)->Arg(24)->Arg(1440)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(verify)->Args({1440, 1})->Args({1440, 2})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace driftwood::snapshot

BENCHMARK_MAIN();
