// What a boundary crossing, an instance and a second load cost.
#include <benchmark/benchmark.h>

#include <unistd.h>

#include <filesystem>
#include <string>

#include "wasm/runtime.h"

namespace driftwood::wasm {
namespace {

constexpr char kGuest[] = R"((module
  (import "driftwood" "empty" (func $empty))
  (import "driftwood" "add" (func $add (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 64) "some data")
  (func (export "nothing"))
  (func (export "four") (param i32 i32 i32 i32) (result i32) (local.get 3))
  (func (export "loop_empty") (param i32)
    (loop (call $empty) (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "loop_add") (param i32) (result i32) (local i32)
    (loop (local.set 1 (call $add (local.get 1) (i32.const 1)))
          (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))))";

void empty(CallContext&, const uint64_t*, uint64_t*) {}
void add(CallContext&, const uint64_t* args, uint64_t* results) { results[0] = args[0] + args[1]; }

const std::vector<HostImport>& imports() {
  static const std::vector<HostImport> list = {
      {"driftwood", "empty", {{}, {}}, empty},
      {"driftwood", "add", {{ValueType::kI32, ValueType::kI32}, {ValueType::kI32}}, add},
  };
  return list;
}

std::shared_ptr<Runtime> runtime_in(const std::string& cache_dir) {
  RuntimeOptions options;
  options.cache_dir = cache_dir;
  return std::move(Runtime::create(options)).value();
}

std::shared_ptr<Module> load(Runtime& runtime, const std::string& text) {
  return std::move(runtime.load("bench.wat", {reinterpret_cast<const uint8_t*>(text.data()), text.size()})).value();
}

// One iteration is one host call of `name`'s loop.
void host_call(benchmark::State& state, const char* name) {
  auto runtime = runtime_in("");
  auto module = load(*runtime, kGuest);
  InstanceOptions options;
  options.call_deadline = std::chrono::milliseconds(0);
  auto instance = std::move(runtime->instantiate(module, imports(), options)).value();
  constexpr uint64_t kCalls = 10'000'000;
  const uint64_t args[] = {kCalls};
  for (auto _ : state) benchmark::DoNotOptimize(instance->call(name, args).is_ok());
  state.counters["per_call"] = benchmark::Counter(static_cast<double>(kCalls) * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(host_call, empty, "loop_empty")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(host_call, add, "loop_add")->Unit(benchmark::kMillisecond);

void call_resolved(benchmark::State& state) {
  auto runtime = runtime_in("");
  auto module = load(*runtime, kGuest);
  auto instance = std::move(runtime->instantiate(module, imports(), {})).value();
  const bool plain = state.range(0) == 0;
  const auto i32 = ValueType::kI32;
  const int handle = plain ? *instance->resolve("nothing", {})
                           : *instance->resolve("four", {{i32, i32, i32, i32}, {i32}});
  const uint64_t args[] = {1, 2, 3, 4};
  uint64_t results[] = {0};
  for (auto _ : state) {
    const Status status = instance->call_resolved(handle, std::span(args, plain ? 0 : 4), std::span(results, plain ? 0 : 1));
    benchmark::DoNotOptimize(status.is_ok());
  }
}
BENCHMARK(call_resolved)->Arg(0)->Arg(1);

void instantiate(benchmark::State& state) {
  auto runtime = runtime_in("");
  auto module = load(*runtime, kGuest);
  for (auto _ : state) {
    auto instance = runtime->instantiate(module, imports(), {});
    benchmark::DoNotOptimize(instance.is_ok());
  }
}
BENCHMARK(instantiate)->Unit(benchmark::kMicrosecond);

// A guest file named by DRIFTWOOD_BENCH_WASM, or the small one above.
void second_load(benchmark::State& state) {
  const std::string folder = std::filesystem::temp_directory_path() / ("dw_bench_cache." + std::to_string(getpid()));
  const char* file = getenv("DRIFTWOOD_BENCH_WASM");
  const auto load_it = [&](Runtime& runtime) {
    return file != nullptr ? std::move(runtime.load_file(file)).value() : load(runtime, kGuest);
  };
  load_it(*runtime_in(folder));
  for (auto _ : state) {
    state.PauseTiming();
    auto runtime = runtime_in(folder);
    state.ResumeTiming();
    auto module = load_it(*runtime);
    if (!module->report().from_cache) state.SkipWithError("not from the cache");
  }
  std::filesystem::remove_all(folder);
}
BENCHMARK(second_load)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace driftwood::wasm

BENCHMARK_MAIN();
