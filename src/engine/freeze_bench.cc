// Freezing, thawing and forking a session of the small real model (DRIFTWOOD_SMOLLM2) at 24, 512 and about
// 4,096 tokens, model loaded. How long a session is held does not depend on what its KV says, so the KV is
// made up, not computed. Files lie in TMPDIR.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "engine/engine.h"
#include "engine/kv_file_for_test.h"
#include "kv/kv_layout.h"

namespace driftwood::engine {
namespace {

using Clock = std::chrono::steady_clock;

struct Bench {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<Engine> engine;
  SessionId session = 0;
};

Result<Bench> set_up(int64_t tokens) {
  const char* path = std::getenv("DRIFTWOOD_SMOLLM2");
  if (path == nullptr) return not_found("DRIFTWOOD_SMOLLM2 is not set");
  static const auto model = load_model(path, {});
  if (!model.is_ok()) return model.status();
  Bench bench;
  DW_ASSIGN_OR_RETURN(bench.device, device::CpuDevice::create({2, ""}));
  EngineOptions options;
  options.kv_budget_bytes = int64_t{512} << 20;
  DW_ASSIGN_OR_RETURN(bench.engine, Engine::create(*model, bench.device.get(), options));
  FrozenSession made_up;
  made_up.max_tokens = bench.engine->max_context();
  made_up.identity = bench.engine->identity(made_up.max_tokens);
  made_up.tokens.assign(static_cast<size_t>(tokens), 7);
  made_up.computed = tokens;
  made_up.has_logits = true;
  made_up.logits = std::vector<float>(static_cast<size_t>((*model)->config.vocab_size), 0.5f);
  made_up.block_bytes = bench.engine->stats().kv_block_bytes;
  const auto bytes =
      std::make_shared<const std::vector<uint8_t>>(static_cast<size_t>(made_up.block_bytes), uint8_t{1});
  made_up.kv_blocks.assign(static_cast<size_t>(kv::blocks_for(tokens)), *bytes);
  made_up.kv_owner = bytes;
  DW_ASSIGN_OR_RETURN(bench.session, bench.engine->thaw(made_up));
  return bench;
}

void freeze(benchmark::State& state) {
  auto bench = set_up(state.range(0));
  if (!bench.is_ok()) return state.SkipWithError(bench.status().message().c_str());
  for (auto _ : state) {
    auto frozen = bench->engine->freeze(bench->session);
    benchmark::DoNotOptimize(frozen);
  }
}

// What a thaw, or a fork, costs by itself.
template <typename Enter>
void time_entering(benchmark::State& state, Engine& engine, const Enter& enter) {
  for (auto _ : state) {
    const auto start = Clock::now();
    const Result<SessionId> session = enter();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
    if (!session.is_ok() || !engine.close(*session).is_ok()) {
      return state.SkipWithError("there was no session");
    }
  }
}

void thaw_copy(benchmark::State& state) {
  auto bench = set_up(state.range(0));
  if (!bench.is_ok()) return state.SkipWithError(bench.status().message().c_str());
  const auto frozen = bench->engine->freeze(bench->session);
  time_entering(state, *bench->engine, [&] { return bench->engine->thaw(*frozen); });
}

void thaw_map(benchmark::State& state) {
  auto bench = set_up(state.range(0));
  if (!bench.is_ok()) return state.SkipWithError(bench.status().message().c_str());
  const auto frozen = testing::move_kv_to_file(*bench->engine->freeze(bench->session));
  time_entering(state, *bench->engine, [&] { return bench->engine->thaw(*frozen); });
}

void fork(benchmark::State& state) {
  auto bench = set_up(state.range(0));
  if (!bench.is_ok()) return state.SkipWithError(bench.status().message().c_str());
  time_entering(state, *bench->engine, [&] { return bench->engine->fork(bench->session, 1); });
}

// What a fork costs in memory, of 1,000 that live at once.
void forks_memory(benchmark::State& state) {
  constexpr int64_t kForks = 1000;
  auto bench = set_up(state.range(0));
  if (!bench.is_ok()) return state.SkipWithError(bench.status().message().c_str());
  std::vector<SessionId> forks;
  forks.reserve(kForks);
  for (auto _ : state) {
    const size_t before = region::process_residency()->rss_bytes;
    for (int64_t i = 0; i < kForks; ++i) forks.push_back(*bench->engine->fork(bench->session, 1));
    const size_t after = region::process_residency()->rss_bytes;
    state.counters["bytes_per_fork"] = static_cast<double>(after - before) / kForks;
    for (const SessionId id : forks) (void)bench->engine->close(id);
    forks.clear();
  }
}

Status compute_one(Engine& engine, SessionId session) {
  constexpr int32_t kToken = 7;
  DW_RETURN_IF_ERROR(engine.append(session, std::span(&kToken, 1)));
  return engine.step(session);
}

// A step of a session that never stopped: what the next ones are to be compared with.
void step_warm(benchmark::State& state) {
  auto bench = set_up(state.range(0));
  if (!bench.is_ok()) return state.SkipWithError(bench.status().message().c_str());
  for (auto _ : state) {
    const auto start = Clock::now();
    const Status status = compute_one(*bench->engine, bench->session);
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
    if (!status.is_ok() || !bench->engine->truncate(bench->session, state.range(0)).is_ok()) {
      return state.SkipWithError(status.message().c_str());
    }
  }
}

enum class Cache { kWarm, kCold };

// The first step of a session thawed from a file; with a cold page cache the thaw and the step.
template <Cache kCache>
void first_step(benchmark::State& state) {
  auto bench = set_up(state.range(0));
  if (!bench.is_ok()) return state.SkipWithError(bench.status().message().c_str());
  Engine& engine = *bench->engine;
  const auto frozen = testing::move_kv_to_file(*engine.freeze(bench->session));
  for (auto _ : state) {
    if (kCache == Cache::kCold && !testing::file_of(*frozen).drop_cached()) {
      return state.SkipWithError("the page cache could not be dropped");
    }
    const auto before = Clock::now();
    const auto session = engine.thaw(*frozen);
    const auto start = kCache == Cache::kWarm ? Clock::now() : before;
    const Status status = session.is_ok() ? compute_one(engine, *session) : session.status();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
    if (!status.is_ok() || !engine.close(*session).is_ok()) {
      return state.SkipWithError(status.message().c_str());
    }
  }
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(24)->Arg(512)->Arg(4095)->Unit(benchmark::kMicrosecond);
}

BENCHMARK(freeze)->Apply(sizes);
BENCHMARK(thaw_copy)->Apply(sizes)->UseManualTime();
BENCHMARK(thaw_map)->Apply(sizes)->UseManualTime();
BENCHMARK(fork)->Apply(sizes)->UseManualTime();
BENCHMARK(forks_memory)->Arg(4095)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(step_warm)->Apply(sizes)->UseManualTime();
BENCHMARK(first_step<Cache::kWarm>)->Apply(sizes)->UseManualTime();
BENCHMARK(first_step<Cache::kCold>)->Apply(sizes)->UseManualTime()->Iterations(5);

}  // namespace
}  // namespace driftwood::engine

BENCHMARK_MAIN();
