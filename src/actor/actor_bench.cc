// What a token costs through a guest, beside the same token without one; and an actor's whole life.
#include <benchmark/benchmark.h>

#include "actor/actors_for_test.h"
#include "actor/fake_engine_for_test.h"
#include "actor/solo_guest.h"

namespace driftwood::actor {
namespace {

constexpr int kTokens = 60;
const std::vector<int32_t> kPrompt = {1, 2, 3};

void native_tokens(benchmark::State& state) {
  FakeEngine engine;
  for (auto _ : state) {
    const engine::SessionId id = *engine.open({});
    static_cast<void>(engine.append(id, kPrompt));
    for (int i = 0; i < kTokens; ++i) {
      static_cast<void>(engine.length(id));
      static_cast<void>(engine.step(id));
      const int32_t token = *engine.sample(id);
      static_cast<void>(engine.append(id, {&token, 1}));
    }
    static_cast<void>(engine.close(id));
  }
  state.SetItemsProcessed(state.iterations() * kTokens);
}
BENCHMARK(native_tokens);

// Includes one message, one session and the wake-up of the pool per 60 tokens.
void guest_tokens(benchmark::State& state) {
  FakeEngine engine;
  const auto system = ActorSystem::create(shared_runtime(), &engine, nullptr, {2});
  ActorOptions options;
  const std::string config = "max_tokens=" + std::to_string(kTokens);
  options.config.assign(config.begin(), config.end());
  int64_t emitted = 0;
  options.output = [&](const Output&) { ++emitted; };
  const ActorId id = *system->spawn("t", guest("tokens"), options);
  for (auto _ : state) {
    static_cast<void>(system->send(id, bytes_of(kPrompt)));
    static_cast<void>(system->wait_idle(id, kPatience));
  }
  if (emitted != state.iterations() * kTokens) state.SkipWithError("tokens are missing");
  state.SetItemsProcessed(state.iterations() * kTokens);
}
BENCHMARK(guest_tokens)->UseRealTime();

void empty_host_calls(benchmark::State& state) {
  const auto solo = *SoloGuest::create(*shared_runtime(), guest("probe"), "probe", {}, nullptr, nullptr);
  constexpr int kCalls = 100000;
  const uint64_t args[1] = {kCalls};
  for (auto _ : state) benchmark::DoNotOptimize(solo->instance().call("probe_calls", args));
  state.SetItemsProcessed(state.iterations() * kCalls);
}
BENCHMARK(empty_host_calls);

void life_of_an_actor(benchmark::State& state) {
  FakeEngine engine;
  const auto system = ActorSystem::create(shared_runtime(), &engine, nullptr, {2});
  for (auto _ : state) {
    const ActorId id = *system->spawn("t", guest("tokens"), {});
    static_cast<void>(system->stop(id));
  }
}
BENCHMARK(life_of_an_actor)->UseRealTime();

}  // namespace
}  // namespace driftwood::actor

BENCHMARK_MAIN();
