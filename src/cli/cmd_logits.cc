#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/checks.h"
#include "cli/command.h"
#include "cli/composition.h"
#include "cli/logits_job.h"

namespace driftwood::cli {
namespace {

struct LogitsFlags {
  EngineFlags engine;
  std::string ids;
  std::string ids_file;
  std::string out;
  int64_t greedy = 0;
  int64_t chunk = 0;
  int beside = 0;
};

Status run_logits(const LogitsFlags& flags) {
  LogitsRequest request;
  if (!flags.ids.empty()) {
    DW_ASSIGN_OR_RETURN(request.ids, parse_ids(flags.ids));
  } else {
    DW_ASSIGN_OR_RETURN(request.ids, read_ids(flags.ids_file));
  }
  request.greedy = flags.greedy;
  request.chunk = flags.chunk;
  request.beside = flags.beside;
  DW_ASSIGN_OR_RETURN(OpenedEngine opened, open_engine(flags.engine));
  DW_ASSIGN_OR_RETURN(const LogitsResult result, compute_logits(*opened.engine, request));
  return write_logits(flags.out, result, opened.device->info().numerics_id);
}

}  // namespace

void add_logits(CLI::App& app, Action* action) {
  CLI::App* cmd =
      app.add_subcommand("logits", "Logits of every position of a token sequence, as a safetensors file");
  cmd->footer(
      "Writes `logits` [T,V] f32 and, with --greedy N, `greedy` [N] i64. Needs no tokenizer. The bytes do "
      "not\n"
      "depend on --threads, --chunk, --beside or DRIFTWOOD_CPU.\n"
      "Example: driftwood logits --model smollm2-135m --ids 1,2,3 --out logits.safetensors --greedy 8");
  auto flags = std::make_shared<LogitsFlags>();
  add_engine_flags(cmd, &flags->engine);
  auto* source = cmd->add_option_group("tokens");
  source->add_option("--ids", flags->ids, "Comma-separated token ids")->check(not_empty());
  source->add_option("--ids-file", flags->ids_file, "FILE.safetensors:TENSOR (i64, i32 or u32 [T])");
  source->require_option(1);
  cmd->add_option("--out", flags->out, "Output file")->required();
  cmd->add_option("--greedy", flags->greedy, "Tokens to continue greedily")->check(CLI::Range(0, 1 << 20));
  cmd->add_option("--chunk", flags->chunk, "Prompt tokens per step; 0: all at once")
      ->check(CLI::Range(0, 1 << 20));
  cmd->add_option("--beside", flags->beside, "Other sessions stepping in the same batches")
      ->check(CLI::Range(0, 64));
  cmd->callback([=] { *action = [=] { return run_logits(*flags); }; });
}

}  // namespace driftwood::cli
