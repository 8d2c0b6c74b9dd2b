// Time of one sample() over 49,152 logits: greedy, and temperature with the usual filters, on a peaked and on
// a flat distribution.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/rng.h"
#include "sampler/sampler.h"

namespace driftwood::sampler {
namespace {

std::vector<float> logits_of(float scale) {
  std::vector<float> logits(49152);
  for (size_t i = 0; i < logits.size(); ++i) {
    float sum = -2.0f;
    for (uint32_t k = 0; k < 4; ++k) sum += random_uniform(7, 0, i, k);
    logits[i] = sum * 1.7f * scale;
  }
  return logits;
}

void run(benchmark::State& state, const SamplerParams& params, float scale) {
  const std::vector<float> logits = logits_of(scale);
  const std::vector<int32_t> history(64, 11);
  Sampler sampler(params);
  int64_t position = 0;
  for (auto _ : state) {
    Result<int32_t> token = sampler.sample(logits, history, position++);
    benchmark::DoNotOptimize(token);
  }
}

void greedy(benchmark::State& state) { run(state, {}, 3.0f); }
void greedy_penalised(benchmark::State& state) { run(state, {.repetition_penalty = 1.1f}, 3.0f); }
void top_p(benchmark::State& state) { run(state, {.temperature = 0.8f, .top_p = 0.95f}, state.range(0)); }
void top_k_top_p(benchmark::State& state) {
  run(state, {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f}, state.range(0));
}
void plain(benchmark::State& state) { run(state, {.temperature = 1.0f}, state.range(0)); }

BENCHMARK(greedy);
BENCHMARK(greedy_penalised);
BENCHMARK(top_p)->Arg(0)->Arg(1)->Arg(3)->Arg(8);  // standard deviation of the logits; 0: all equal
BENCHMARK(top_k_top_p)->Arg(0)->Arg(3);
BENCHMARK(plain)->Arg(3);

}  // namespace
}  // namespace driftwood::sampler

BENCHMARK_MAIN();
