#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "cli/command.h"
#include "cli/composition.h"
#include "engine/macs_per_token.h"

namespace driftwood::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchFlags {
  EngineFlags engine;
  int64_t prompt = 512;
  int64_t generate = 128;
  int64_t depth = 0;
  int sessions = 1;
  int repeat = 5;
  bool json = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocab, uint64_t stream) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(random_u64(1, stream, i, 0) % static_cast<uint64_t>(vocab));
  }
  return ids;
}

Status append_and_step(engine::Engine& engine, engine::SessionId session, std::span<const int32_t> ids) {
  DW_RETURN_IF_ERROR(engine.append(session, ids));
  return engine.step(session);
}

// Tokens per second of a prompt of `count` tokens behind `depth` earlier ones (the llama-bench convention:
// random tokens, logits of the last only).
Result<double> time_prompt(engine::Engine& engine, int64_t count, int64_t depth, uint64_t stream) {
  const int64_t vocab = engine.model().config.vocab_size;
  DW_ASSIGN_OR_RETURN(const engine::SessionId session, engine.open({}));
  if (depth > 0)
    DW_RETURN_IF_ERROR(append_and_step(engine, session, random_tokens(depth, vocab, stream + 1000)));
  const std::vector<int32_t> ids = random_tokens(count, vocab, stream);
  const Clock::time_point start = Clock::now();
  DW_RETURN_IF_ERROR(append_and_step(engine, session, ids));
  const double seconds = seconds_since(start);
  DW_RETURN_IF_ERROR(engine.close(session));
  return static_cast<double>(count) / seconds;
}

// One sequence of a generation that is timed: random tokens, one at a time, no sampling.
Status generate(engine::Engine& engine, engine::SessionId session, int64_t count, uint64_t stream) {
  for (const int32_t& id : random_tokens(count, engine.model().config.vocab_size, stream)) {
    DW_RETURN_IF_ERROR(append_and_step(engine, session, std::span(&id, 1)));
  }
  return Status::ok();
}

// Tokens per second of `sessions` sequences that step together, each from an empty context or behind `depth`
// tokens: of all of them taken together.
Result<double> time_generate(engine::Engine& engine, int sessions, int64_t count, int64_t depth,
                             uint64_t stream) {
  const int64_t vocab = engine.model().config.vocab_size;
  std::vector<engine::SessionId> ids;
  for (int i = 0; i < sessions; ++i) {
    DW_ASSIGN_OR_RETURN(const engine::SessionId session, engine.open({}));
    ids.push_back(session);
    if (depth > 0)
      DW_RETURN_IF_ERROR(append_and_step(engine, session, random_tokens(depth, vocab, stream + 1000)));
  }
  std::vector<Status> results(ids.size());
  const auto run = [&](size_t i) { results[i] = generate(engine, ids[i], count, stream + i); };
  const Clock::time_point start = Clock::now();
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < ids.size(); ++i) others.emplace_back(run, i);
    run(0);
  }
  const double seconds = seconds_since(start);
  for (size_t i = 0; i < ids.size(); ++i) {
    DW_RETURN_IF_ERROR(results[i]);
    DW_RETURN_IF_ERROR(engine.close(ids[i]));
  }
  return static_cast<double>(count) * sessions / seconds;
}

struct Series {
  std::vector<double> values;
  double median() const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
  // (max - min) / median
  double spread() const {
    if (values.empty()) return 0;
    const auto [lo, hi] = std::minmax_element(values.begin(), values.end());
    return (*hi - *lo) / median();
  }
};

// Bytes of the file's tensors that one decoded token reads: all, less an embedding table that is not the
// head.
int64_t bytes_per_token(const engine::LoadedModel& model) {
  int64_t bytes = model.checkpoint->total_tensor_bytes();
  if (model.config.tied_head) return bytes;
  for (const char* name : {"token_embd.weight", "model.embed_tokens.weight"}) {
    if (const auto* t = model.checkpoint->find(name)) {
      bytes -= static_cast<int64_t>(t->bytes.size() + t->scales.size() + t->biases.size());
    }
  }
  return bytes;
}

Status print_result(const BenchFlags& flags, const OpenedEngine& opened, const Series& prompt,
                    const Series& generate) {
  const int64_t bytes = opened.model->checkpoint->total_tensor_bytes();
  // The weights are read once for all sessions that step together.
  const double gb_per_s =
      static_cast<double>(bytes_per_token(*opened.model)) * generate.median() / flags.sessions / 1e9;
  const device::DeviceInfo& info = opened.device->info();
  const weights::Residency residency = opened.model->weights->residency();
  if (flags.json) {
    DW_ASSIGN_OR_RETURN(const engine::MacsPerToken macs, engine::macs_per_prompt_token(*opened.model));
    nlohmann::ordered_json out = {
        {"model", flags.engine.model},
        {"device", info.name},
        {"isa", info.isa},
        {"numerics_id", info.numerics_id},
        {"threads", info.threads},
        {"prompt", flags.prompt},
        {"generate", flags.generate},
        {"depth", flags.depth},
        {"sessions", flags.sessions},
        {"repeat", flags.repeat},
        {"prompt_tokens_per_s", prompt.median()},
        {"generate_tokens_per_s", generate.median()},
        {"weights_bytes", bytes},
        {"bytes_per_token", bytes_per_token(*opened.model)},
        {"weights_kept_bytes", residency.kept_bytes},
        {"weights_streamed_bytes", residency.streamed_bytes},
        {"macs_per_token", {{"int8", macs.int8}, {"f32", macs.f32}}},
        {"read_gb_per_s", gb_per_s},
        {"spread", {{"prompt", prompt.spread()}, {"generate", generate.spread()}}},
        {"prompt_runs", prompt.values},
        {"generate_runs", generate.values},
        {"model_load_ms", opened.model->load_ms},
    };
    std::printf("%s\n", out.dump(2).c_str());
    return Status::ok();
  }
  std::printf("%s on %s, %s\n", flags.engine.model.c_str(), info.description.c_str(),
              info.numerics_id.c_str());
  std::printf("  prompt %5lld   %10.1f tok/s   spread %4.1f %%\n", static_cast<long long>(flags.prompt),
              prompt.median(), 100 * prompt.spread());
  std::printf("  generate %3lld   %10.1f tok/s   spread %4.1f %%   %.1f GB/s of %.1f MB weights\n",
              static_cast<long long>(flags.generate), generate.median(), 100 * generate.spread(), gb_per_s,
              static_cast<double>(bytes) / 1e6);
  if (residency.streamed_bytes > 0) {
    std::printf("  weights %.1f MB stay in memory, %.1f MB come from disk for each step\n",
                static_cast<double>(residency.kept_bytes) / 1e6,
                static_cast<double>(residency.streamed_bytes) / 1e6);
  }
  return Status::ok();
}

// What would end a long run late is said before it begins.
Status check_lengths(const BenchFlags& flags, const engine::Engine& engine) {
  if (flags.prompt == 0 && flags.generate == 0)
    return invalid_argument("--prompt 0 and --generate 0 leave nothing to measure");
  const int64_t tokens = flags.depth + std::max(flags.prompt, flags.generate);
  if (tokens <= engine.max_context()) return Status::ok();
  return out_of_range("--depth and the larger of --prompt and --generate are " + std::to_string(tokens) +
                      " tokens, a session holds at most " + std::to_string(engine.max_context()));
}

Status run_bench(const BenchFlags& flags) {
  DW_ASSIGN_OR_RETURN(OpenedEngine opened, open_engine(flags.engine));
  engine::Engine& engine = *opened.engine;
  DW_RETURN_IF_ERROR(check_lengths(flags, engine));
  Series prompt;
  Series generate;
  // The first round warms caches and is not counted.
  for (int round = 0; round <= flags.repeat; ++round) {
    if (flags.prompt > 0) {
      DW_ASSIGN_OR_RETURN(const double rate, time_prompt(engine, flags.prompt, flags.depth, round));
      if (round > 0) prompt.values.push_back(rate);
    }
    if (flags.generate > 0) {
      const int64_t count = round == 0 ? std::min<int64_t>(flags.generate, 16) : flags.generate;
      DW_ASSIGN_OR_RETURN(const double rate,
                          time_generate(engine, flags.sessions, count, flags.depth, round));
      if (round > 0) generate.values.push_back(rate);
    }
  }
  return print_result(flags, opened, prompt, generate);
}

}  // namespace

void add_bench(CLI::App& app, Action* action) {
  CLI::App* cmd = app.add_subcommand("bench", "Tokens per second of prompt and generation");
  cmd->footer(
      "The llama-bench convention: random tokens, `--prompt` in one go, `--generate` one by one; medians of\n"
      "--repeat runs after one that is not counted. In the JSON, macs_per_token is what the matrices but\n"
      "the head cost a token of a prompt, bytes_per_token what a generated token reads of the file's "
      "tensors.\n"
      "Example: driftwood bench --model smollm2-135m --prompt 512 --generate 128 --threads 2 --repeat 5 "
      "--json");
  auto flags = std::make_shared<BenchFlags>();
  add_engine_flags(cmd, &flags->engine);
  cmd->add_option("--prompt", flags->prompt, "Prompt tokens; 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  cmd->add_option("--generate", flags->generate, "Generated tokens; 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  cmd->add_option("--depth", flags->depth, "Tokens already in the context")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  cmd->add_option("--sessions", flags->sessions,
                  "Sequences that generate together; their tokens are added up")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  cmd->add_option("--repeat", flags->repeat, "Counted runs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  cmd->add_flag("--json", flags->json, "Print JSON");
  cmd->callback([=] { *action = [=] { return run_bench(*flags); }; });
}

}  // namespace driftwood::cli
