// One subcommand of the program: registers its flags and leaves what to run.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "base/status.h"

namespace driftwood::cli {

// Set by the chosen subcommand while the command line is parsed, called by main afterwards.
using Action = std::function<Status()>;

void add_run(CLI::App& app, Action* action);
void add_chat(CLI::App& app, Action* action);
void add_proof(CLI::App& app, Action* action);
void add_logits(CLI::App& app, Action* action);
void add_tokenize(CLI::App& app, Action* action);
void add_bench(CLI::App& app, Action* action);
void add_models(CLI::App& app, Action* action);
void add_verify(CLI::App& app, Action* action);
void add_snapshot(CLI::App& app, Action* action);
void add_completion(CLI::App& app, Action* action);

}  // namespace driftwood::cli
