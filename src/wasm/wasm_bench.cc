// What a boundary crossing, an instance, a second load and a restore cost.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
  return std::move(runtime.load("bench.wat", {reinterpret_cast<const uint8_t*>(text.data()), text.size()}))
      .value();
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
  state.counters["per_call"] =
      benchmark::Counter(static_cast<double>(kCalls) * static_cast<double>(state.iterations()),
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
  const int handle =
      plain ? *instance->resolve("nothing", {}) : *instance->resolve("four", {{i32, i32, i32, i32}, {i32}});
  const uint64_t args[] = {1, 2, 3, 4};
  uint64_t results[] = {0};
  for (auto _ : state) {
    const Status status =
        instance->call_resolved(handle, std::span(args, plain ? 0 : 4), std::span(results, plain ? 0 : 1));
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
  const std::string folder =
      std::filesystem::temp_directory_path() / ("dw_bench_cache." + std::to_string(getpid()));
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

constexpr size_t kMiB = size_t{1} << 20;

// A guest with a memory of so many MiB, frozen in a file of its own (all bytes set, from offset 0).
class FrozenGuest {
 public:
  explicit FrozenGuest(size_t mib)
      : path_(std::filesystem::temp_directory_path() / ("dw_bench_frozen." + std::to_string(getpid()))) {
    const std::string pages = std::to_string(mib * kMiB / 65536);
    module_ = load(*runtime_, "(module (memory (export \"memory\") " + pages + R"()
      (global $sum (mut i32) (i32.const 1))
      (data (i32.const 64) "some data")
      (func (export "touch") (result i32)
        (global.set $sum (i32.add (global.get $sum) (i32.load (i32.const 64))))
        (i32.store (i32.const 4096) (global.get $sum))
        (global.get $sum))))");
    options_.max_memory_bytes = mib * kMiB;
    auto guest = std::move(runtime_->instantiate(module_, {}, options_)).value();
    std::fill_n(guest->memory().base(), guest->memory_bytes(), uint8_t{0x5a});
    globals_ = std::move(guest->globals()).value();
    bytes_ = guest->memory_bytes();
    const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (uint64_t at = 0; at < bytes_; at += kMiB) {
      const ssize_t wrote = pwrite(fd, guest->memory().base() + at, kMiB, static_cast<off_t>(at));
      DW_CHECK(wrote == static_cast<ssize_t>(kMiB), "writing the benchmark's image");
    }
    fsync(fd);
    close(fd);
  }
  ~FrozenGuest() { std::filesystem::remove(path_); }

  std::unique_ptr<Instance> restore() {
    struct File {
      int fd;
      ~File() { close(fd); }
    };
    auto file = std::make_shared<File>(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    FrozenMemory memory;
    memory.image = {{{file->fd, 0, bytes_}}, 0, file};
    return restore(memory, globals_);
  }
  std::unique_ptr<Instance> restore(const FrozenMemory& memory, std::span<const GlobalValue> globals) {
    return std::move(runtime_->restore(module_, {}, options_, memory, globals)).value();
  }
  // A guest that has all its pages to itself.
  std::unique_ptr<Instance> fresh() {
    auto guest = std::move(runtime_->instantiate(module_, {}, options_)).value();
    std::fill_n(guest->memory().base(), guest->memory_bytes(), uint8_t{0x5a});
    return guest;
  }

 private:
  std::string path_;
  std::shared_ptr<Runtime> runtime_ = runtime_in("");
  std::shared_ptr<Module> module_;
  InstanceOptions options_;
  std::vector<GlobalValue> globals_;
  uint64_t bytes_ = 0;
};

// Times what `work` does alone, `after` is not counted; the counter is the median in microseconds.
template <typename Work, typename After>
void time_each(benchmark::State& state, Work work, After after) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> us;
  for (auto _ : state) {
    const auto begin = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    after();
    state.SetIterationTime(seconds);
    us.push_back(seconds * 1e6);
  }
  std::nth_element(us.begin(), us.begin() + static_cast<ptrdiff_t>(us.size() / 2), us.end());
  state.counters["median_us"] = us[us.size() / 2];
}

// From a file that is not open to the return of the first call; module loaded, page cache warm.
void restore(benchmark::State& state) {
  FrozenGuest frozen(static_cast<size_t>(state.range(0)));
  std::unique_ptr<Instance> guest;
  time_each(
      state,
      [&] {
        guest = frozen.restore();
        benchmark::DoNotOptimize(guest->call("touch", {}).is_ok());
      },
      [&] { guest.reset(); });
}
BENCHMARK(restore)->Arg(1)->Arg(16)->Arg(256)->Iterations(2001)->UseManualTime()->Unit(
    benchmark::kMicrosecond);

// One page of a hundred.
void write_some(Instance& guest) {
  const size_t page = region::os_page_bytes();
  for (uint64_t at = 0; at < guest.memory_bytes(); at += 100 * page) ++guest.memory().base()[at];
}

// Finding the dirty pages of a restored guest that wrote one page of a hundred.
void dirty_pages(benchmark::State& state) {
  FrozenGuest frozen(static_cast<size_t>(state.range(0)));
  const std::unique_ptr<Instance> guest = frozen.restore();
  write_some(*guest);
  time_each(state, [&] { benchmark::DoNotOptimize(guest->memory().dirty_pages().is_ok()); }, [] {});
}

// Memory and globals of such a guest as a value.
void freeze(benchmark::State& state) {
  FrozenGuest frozen(static_cast<size_t>(state.range(0)));
  const std::unique_ptr<Instance> guest = frozen.restore();
  write_some(*guest);
  time_each(
      state,
      [&] {
        benchmark::DoNotOptimize(guest->freeze_memory().is_ok());
        benchmark::DoNotOptimize(guest->globals().is_ok());
      },
      [] {});
}

// A child made of it, up to the moment it can be called.
void time_fork(benchmark::State& state, FrozenGuest& frozen, Instance& parent) {
  std::unique_ptr<Instance> child;
  time_each(
      state,
      [&] {
        const FrozenMemory memory = std::move(parent.fork_memory()).value();
        const std::vector<GlobalValue> globals = std::move(parent.globals()).value();
        child = frozen.restore(memory, globals);
      },
      [&] {
        benchmark::DoNotOptimize(child->call("touch", {}).is_ok());
        child.reset();
      });
}

void fork_of_restored(benchmark::State& state) {
  FrozenGuest frozen(static_cast<size_t>(state.range(0)));
  const std::unique_ptr<Instance> parent = frozen.restore();
  write_some(*parent);
  time_fork(state, frozen, *parent);
}

// The parent has all its pages to itself: an image was made by the first fork, one page of a hundred written
// since.
void fork_of_fresh(benchmark::State& state) {
  FrozenGuest frozen(static_cast<size_t>(state.range(0)));
  const std::unique_ptr<Instance> parent = frozen.fresh();
  DW_CHECK(parent->fork_memory().is_ok(), "making the image");
  write_some(*parent);
  time_fork(state, frozen, *parent);
}

// The first fork of such a parent, which makes the image.
void first_fork_of_fresh(benchmark::State& state) {
  FrozenGuest frozen(static_cast<size_t>(state.range(0)));
  std::unique_ptr<Instance> parent = frozen.fresh();
  time_each(
      state, [&] { benchmark::DoNotOptimize(parent->fork_memory().is_ok()); },
      [&] { parent = frozen.fresh(); });
}

void sized(benchmark::internal::Benchmark* bench, int64_t iterations) {
  bench->Arg(1)->Arg(16)->Arg(256)->Iterations(iterations)->UseManualTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK(dirty_pages)->Apply([](auto* b) { sized(b, 201); });
BENCHMARK(freeze)->Apply([](auto* b) { sized(b, 201); });
BENCHMARK(fork_of_restored)->Apply([](auto* b) { sized(b, 1001); });
BENCHMARK(fork_of_fresh)->Apply([](auto* b) { sized(b, 51); });
BENCHMARK(first_fork_of_fresh)->Apply([](auto* b) { sized(b, 11); });

}  // namespace
}  // namespace driftwood::wasm

BENCHMARK_MAIN();
