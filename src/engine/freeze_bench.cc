// Freezing and thawing a session of the small real model (DRIFTWOOD_SMOLLM2) at 24, 512 and 4,096 tokens,
// model loaded. How long a session is held does not depend on what its KV says, so the KV is made up, not
// computed.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "engine/engine.h"
#include "kv/kv_layout.h"

namespace driftwood::engine {
namespace {

struct Bench {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<Engine> engine;
  SessionId session = 0;
};

Result<Bench> set_up(int64_t tokens) {
  const char* path = std::getenv("DRIFTWOOD_SMOLLM2");
  if (path == nullptr) return not_found("DRIFTWOOD_SMOLLM2 is not set");
  DW_ASSIGN_OR_RETURN(auto model, load_model(path, {}));
  Bench bench;
  DW_ASSIGN_OR_RETURN(bench.device, device::CpuDevice::create({1, ""}));
  EngineOptions options;
  options.kv_budget_bytes = int64_t{512} << 20;
  DW_ASSIGN_OR_RETURN(bench.engine, Engine::create(model, bench.device.get(), options));
  FrozenSession made_up;
  made_up.max_tokens = bench.engine->max_context();
  made_up.identity = bench.engine->identity(made_up.max_tokens);
  made_up.tokens.assign(static_cast<size_t>(tokens), 7);
  made_up.computed = tokens;
  made_up.has_logits = true;
  made_up.logits.assign(static_cast<size_t>(model->config.vocab_size), 0.5f);
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

void thaw(benchmark::State& state) {
  auto bench = set_up(state.range(0));
  if (!bench.is_ok()) return state.SkipWithError(bench.status().message().c_str());
  const auto frozen = bench->engine->freeze(bench->session);
  for (auto _ : state) {
    const auto session = bench->engine->thaw(*frozen);
    state.PauseTiming();
    if (!session.is_ok() || !bench->engine->close(*session).is_ok()) {
      return state.SkipWithError("a session did not thaw");
    }
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * frozen->kv_bytes());
}

BENCHMARK(freeze)->Arg(24)->Arg(512)->Arg(4095)->Unit(benchmark::kMicrosecond);
BENCHMARK(thaw)->Arg(24)->Arg(512)->Arg(4095)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace driftwood::engine

BENCHMARK_MAIN();
