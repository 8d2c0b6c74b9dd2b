#include <unistd.h>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "cli/actor_host.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/embedded_guests.h"
#include "engine/loaded_model.h"

namespace driftwood::cli {
namespace {

struct ChatFlags {
  HostFlags host;
  std::string system;
  int64_t max_tokens = 512;
  float temperature = 0.0f;
  int top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  uint64_t seed = 0;
};

// The lines of key=value that sdk/actors/chat reads. A line break in the system prompt becomes a space.
std::vector<uint8_t> actor_config(const ChatFlags& flags) {
  std::ostringstream out;
  std::string system = flags.system;
  for (char& c : system) c = c == '\n' || c == '\r' ? ' ' : c;
  if (!system.empty()) out << "system=" << system << "\n";
  out << "max_tokens=" << flags.max_tokens << "\n"
      << "temperature=" << flags.temperature << "\n"
      << "top_k=" << flags.top_k << "\n"
      << "top_p=" << flags.top_p << "\n"
      << "min_p=" << flags.min_p << "\n"
      << "repetition_penalty=" << flags.repetition_penalty << "\n"
      << "presence_penalty=" << flags.presence_penalty << "\n"
      << "frequency_penalty=" << flags.frequency_penalty << "\n"
      << "seed=" << flags.seed << "\n";
  const std::string text = out.str();
  return {text.begin(), text.end()};
}

Status run_chat(const ChatFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto host, ActorHost::open(flags.host));
  if (host->opened().model == nullptr)
    return failed_precondition("chat needs a model: --model none has nobody to talk to");
  if (host->opened().model->tokenizer == nullptr) {
    return host->opened().model->tokenizer_status.with_context("chat needs a tokenizer");
  }
  DW_ASSIGN_OR_RETURN(const auto module, host->load_bytes("chat", chat_guest()));
  actor::ActorOptions options;
  options.config = actor_config(flags);
  options.seed = flags.seed;
  DW_ASSIGN_OR_RETURN(const actor::ActorId id, host->spawn("chat", module, std::move(options)));
  DW_RETURN_IF_ERROR(host->wait_turn(id));
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) {
    std::fprintf(stderr, "%s, through a sandboxed actor. An empty line or Ctrl-D ends.\n",
                 flags.host.engine.model.c_str());
  }
  std::string line;
  for (;;) {
    if (terminal) std::fprintf(stderr, "> ");
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) {
      if (terminal) break;
      continue;
    }
    DW_RETURN_IF_ERROR(host->turn(id, line));
    std::printf("\n");
    std::fflush(stdout);
  }
  return Status::ok();
}

}  // namespace

void add_chat(CLI::App& app, Action* action) {
  CLI::App* cmd = app.add_subcommand("chat", "Talk to a model through the chat actor");
  cmd->footer(
      "Each line of standard input is a turn. The conversation lives in the actor's own memory.\n"
      "Example: driftwood chat --model smollm2-135m --temperature 0.7 --seed 1");
  auto flags = std::make_shared<ChatFlags>();
  flags->host.model_is_optional = false;
  add_host_flags(cmd, &flags->host);
  cmd->add_option("--system", flags->system, "System prompt");
  cmd->add_option("--max-tokens", flags->max_tokens, "Most tokens of an answer")
      ->check(whole_number(1, kMostInt32))
      ->capture_default_str();
  cmd->add_option("--temperature", flags->temperature, "0: always the best token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  cmd->add_option("--top-k", flags->top_k, "0: off")
      ->check(whole_number(0, kMostInt32))
      ->capture_default_str();
  cmd->add_option("--top-p", flags->top_p, "1: off")->check(CLI::Range(0.0, 1.0))->capture_default_str();
  cmd->add_option("--min-p", flags->min_p, "0: off")->check(CLI::Range(0.0, 1.0))->capture_default_str();
  cmd->add_option("--repetition-penalty", flags->repetition_penalty, "1: off")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  cmd->add_option("--presence-penalty", flags->presence_penalty, "0: off")->capture_default_str();
  cmd->add_option("--frequency-penalty", flags->frequency_penalty, "0: off")->capture_default_str();
  cmd->add_option("--seed", flags->seed, "Seed of the draws")->check(whole_number())->capture_default_str();
  cmd->callback([=] { *action = [=] { return run_chat(*flags); }; });
}

}  // namespace driftwood::cli
