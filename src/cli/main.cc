// driftwood: the program. The composition root: the only place that names concrete backends.
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "base/code_table.h"
#include "cli/command.h"
#include "os/signals.h"
#include "text/tokenizer.h"

namespace driftwood::cli {
namespace {

// Libraries below may throw (no memory, broken streams); here is the edge where that becomes a Status.
Status run_action(const Action& action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("out of memory");
  } catch (const std::exception& e) {
    return internal_error(e.what());
  }
}

// CLI11 lets a config file win over the environment; ours is flag > environment > config file. So variables
// become flags of the chosen subcommand, unless the flag is given.
std::vector<std::string> with_environment(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const auto given = [&](const std::string& flag) {
    return std::any_of(args.begin(), args.end(),
                       [&](const std::string& a) { return a == flag || a.starts_with(flag + "="); });
  };
  const auto add = [&](const CLI::App& owner, size_t at) {
    for (const CLI::Option* option : owner.get_options()) {
      const char* value =
          option->get_envname().empty() ? nullptr : std::getenv(option->get_envname().c_str());
      const std::string flag = option->get_lnames().empty() ? "" : "--" + option->get_lnames()[0];
      if (value == nullptr || *value == '\0' || flag.empty() || given(flag)) continue;
      args.insert(args.begin() + static_cast<std::ptrdiff_t>(at), flag + "=" + value);
    }
  };
  // The chosen subcommand, and that one's own; the later in the line first, so that places stay right.
  const std::function<void(const CLI::App&, size_t)> add_for_chosen = [&](const CLI::App& parent,
                                                                          size_t from) {
    const auto commands = parent.get_subcommands([](const CLI::App*) { return true; });
    for (size_t i = from; i < args.size(); ++i) {
      const auto chosen = std::find_if(commands.begin(), commands.end(),
                                       [&](const CLI::App* c) { return c->get_name() == args[i]; });
      if (chosen == commands.end()) continue;
      add_for_chosen(**chosen, i + 1);
      return add(**chosen, i + 1);
    }
  };
  add_for_chosen(app, 0);
  add(app, 0);
  std::reverse(args.begin(), args.end());  // as CLI11 takes them
  return args;
}

int run(int argc, char** argv) {
  CLI::App app(
      "driftwood: WebAssembly actors that drive language models, on memory shared with the accelerator");
  app.name("driftwood");
  app.require_subcommand(1);
  app.set_version_flag("--version", "driftwood " DW_VERSION);
  app.set_config("--config", "", "Read flags from this TOML file (flags and DRIFTWOOD_* variables win)")
      ->envname("DRIFTWOOD_CONFIG");
  app.footer(
      "Settings: flag > environment (DRIFTWOOD_*) > config file > default.\n"
      "Example: driftwood chat --model smollm2-135m");
  app.allow_config_extras(CLI::config_extras_mode::error);
  Action action;
  add_run(app, &action);
  add_chat(app, &action);
  add_proof(app, &action);
  add_logits(app, &action);
  add_tokenize(app, &action);
  add_bench(app, &action);
  add_models(app, &action);
  add_verify(app, &action);
  add_snapshot(app, &action);
  add_completion(app, &action);
  try {
    app.parse(with_environment(app, argc, argv));
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : code_row(Code::kInvalidArgument).exit_code;
  }
  Status status = run_action(action);
  if (status.is_ok() && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    status = data_loss("standard output took only part of the result");
  }
  if (status.is_ok()) return 0;
  std::fflush(stdout);
  std::string message = status.to_string();
  // Names from files and guests may hold escape sequences, line breaks, and bytes that are no text.
  text::Utf8Assembler assembler;
  message = assembler.push(message) + assembler.finish();
  for (char& c : message) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = '?';
  }
  constexpr size_t kMostBytes = 4096;
  if (message.size() > kMostBytes) message = message.substr(0, kMostBytes) + " ...";
  std::fprintf(stderr, "driftwood: %s\n", message.c_str());
  return code_row(status.code()).exit_code;
}

}  // namespace
}  // namespace driftwood::cli

int main(int argc, char** argv) {
  driftwood::os::ignore_file_size_signal();
  return driftwood::cli::run(argc, argv);
}
