// driftwood verify continuity, and the hidden command its processes run.
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/continuity.h"
#include "os/temporary_folder.h"

namespace driftwood::cli {
namespace {

constexpr const char* kWays[] = {"warm", "cold", "forked", "restored", "moved"};

std::vector<ContinuityRound> rounds_of(const ContinuityFlags& flags) {
  std::vector<ContinuityRound> rounds;
  for (const bool sampled : {false, true}) {
    if (flags.sampling == (sampled ? "greedy" : "sampled")) continue;
    rounds.push_back({sampled, 0});
    if (flags.beside > 0) rounds.push_back({sampled, flags.beside});
  }
  return rounds;
}

void print(const ContinuityFlags& flags, const std::string& numerics_id, size_t rounds,
           const ContinuityFigures& figures) {
  const bool equal = figures.first_difference.empty() && figures.tokens_recomputed == 0;
  if (flags.json) {
    nlohmann::json out = {{"equal", equal},
                          {"ways", nlohmann::json::array()},
                          {"boundaries", figures.boundaries},
                          {"rounds", rounds},
                          {"comparisons", figures.comparisons},
                          {"tokens_recomputed", figures.tokens_recomputed},
                          {"processes_killed", figures.kills},
                          {"numerics_id", numerics_id},
                          {"first_difference", figures.first_difference}};
    for (const char* way : kWays) out["ways"].push_back(way);
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("%s: warm = cold = forked = restored after kill -9 = moved\n", equal ? "equal" : "DIFFERENT");
  std::string kinds = flags.sampling == "both" ? "greedy and sampled" : flags.sampling;
  kinds += flags.beside > 0 ? ", alone and beside others" : ", alone";
  std::printf("  boundaries crossed    %lld in %zu rounds (%s)\n", static_cast<long long>(figures.boundaries),
              rounds, kinds.c_str());
  std::printf("  actors compared       %lld (ids, memory, globals, KV, sampler, next logits: every byte)\n",
              static_cast<long long>(figures.comparisons));
  std::printf("  tokens recomputed     %lld\n", static_cast<long long>(figures.tokens_recomputed));
  std::printf("  processes killed      %lld\n", static_cast<long long>(figures.kills));
  if (!figures.first_difference.empty())
    std::printf("  first difference      %s\n", figures.first_difference.c_str());
}

Status verify_continuity_command(const ContinuityFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto host, ActorHost::open(flags.host));
  const int64_t needed = int64_t{flags.prompt_tokens} + flags.boundaries + 2;
  if (needed > host->opened().engine->max_context()) {
    return invalid_argument("--prompt-tokens and --boundaries need a context of " + std::to_string(needed) +
                            " tokens, here it is " + std::to_string(host->opened().engine->max_context()) +
                            " (--context, or the model's own)");
  }
  DW_ASSIGN_OR_RETURN(const auto temporary, os::TemporaryFolder::create("driftwood-continuity"));
  const std::string work = flags.work.empty() ? temporary->path() : flags.work;
  const std::vector<ContinuityRound> rounds = rounds_of(flags);
  ContinuityFigures figures;
  for (size_t i = 0; i < rounds.size() && figures.first_difference.empty(); ++i) {
    const std::string folder = work + "/round" + std::to_string(i);
    if (std::filesystem::exists(folder))
      return already_exists(folder + " exists: --work needs a fresh folder");
    DW_RETURN_IF_ERROR(run_continuity_round(*host, flags, rounds[i], folder, &figures));
    std::error_code ignored;
    if (flags.work.empty()) std::filesystem::remove_all(folder, ignored);
  }
  print(flags, host->opened().device->info().numerics_id, rounds.size(), figures);
  if (!figures.first_difference.empty())
    return data_loss("continuity is broken: " + figures.first_difference);
  if (figures.tokens_recomputed != 0) return data_loss("tokens were computed again");
  return Status::ok();
}

void add_continuity_step(CLI::App& app, Action* action) {
  CLI::App* cmd = app.add_subcommand("continuity-step", "One process of `verify continuity`")->group("");
  auto flags = std::make_shared<ContinuityStepFlags>();
  flags->host.model_is_optional = false;
  add_host_flags(cmd, &flags->host);
  cmd->add_option("--store", flags->store)->required();
  cmd->add_option("--from", flags->from);
  cmd->add_option("--to", flags->to)->required();
  cmd->add_option("--prompt-tokens", flags->prompt_tokens);
  cmd->add_option("--beside", flags->beside);
  cmd->add_flag("--sampled", flags->sampled);
  cmd->callback([=] { *action = [=] { return run_continuity_step(*flags); }; });
}

}  // namespace

void add_verify(CLI::App& app, Action* action) {
  add_continuity_step(app, action);
  CLI::App* verify = app.add_subcommand("verify", "Prove what Driftwood promises, on this machine");
  verify->require_subcommand(1);
  CLI::App* cmd = verify->add_subcommand(
      "continuity",
      "An actor forked, killed and restored, or moved goes on bit for bit as one that never stopped");
  cmd->footer(
      "At every boundary between two tokens five actors are compared byte for byte: one that never stops, "
      "one\n"
      "started anew, a live fork, one restored in a new process after kill -9, and one moved to another "
      "folder,\n"
      "process and instruction set. Exit code 0 only if nothing differs and no token was computed twice.\n"
      "Example: driftwood verify continuity --model smollm2-135m --json");
  auto flags = std::make_shared<ContinuityFlags>();
  flags->host.model_is_optional = false;
  add_host_flags(cmd, &flags->host);
  cmd->add_option("--boundaries", flags->boundaries, "Token boundaries of each round")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  cmd->add_option("--prompt-tokens", flags->prompt_tokens, "Length of the prompt")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  cmd->add_option("--beside", flags->beside,
                  "Other actors in the batches of every second round; 0: no such rounds")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  cmd->add_option("--sampling", flags->sampling, "greedy, sampled or both")
      ->check(CLI::IsMember({"greedy", "sampled", "both"}))
      ->capture_default_str();
  cmd->add_option("--work", flags->work, "Folder for the stores; kept. Default: a temporary one");
  cmd->add_flag("--json", flags->json, "Print JSON");
  cmd->callback([=] { *action = [=] { return verify_continuity_command(*flags); }; });
}

}  // namespace driftwood::cli
