#include <cstdio>
#include <string>

#include "cli/command.h"

namespace driftwood::cli {
namespace {

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    words += sub->get_name() + " ";
  return words;
}

std::string options_of(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  return words;
}

void print_bash(const CLI::App& app) {
  std::printf("_driftwood() {\n  local cur=${COMP_WORDS[COMP_CWORD]}\n  case ${COMP_WORDS[1]} in\n");
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::printf("    %s) COMPREPLY=($(compgen -f -W '%s' -- \"$cur\"));;\n", sub->get_name().c_str(),
                options_of(*sub).c_str());
  }
  std::printf(
      "    *) COMPREPLY=($(compgen -W '%s' -- \"$cur\"));;\n  esac\n}\ncomplete -o filenames -F _driftwood "
      "driftwood\n",
      (words_of(app) + options_of(app)).c_str());
}

void print_fish(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::printf("complete -c driftwood -n __fish_use_subcommand -a %s -d '%s'\n", sub->get_name().c_str(),
                sub->get_description().c_str());
    for (const CLI::Option* option : sub->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        std::printf("complete -c driftwood -n '__fish_seen_subcommand_from %s' -l %s\n",
                    sub->get_name().c_str(), name.c_str());
      }
    }
  }
}

}  // namespace

void add_completion(CLI::App& app, Action* action) {
  CLI::App* cmd = app.add_subcommand("completion", "Print a shell completion script");
  cmd->footer("Example: driftwood completion bash > ~/.local/share/bash-completion/completions/driftwood");
  auto shell = std::make_shared<std::string>();
  cmd->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  const CLI::App* root = &app;
  cmd->callback([=] {
    *action = [=]() -> Status {
      if (*shell == "fish") {
        print_fish(*root);
      } else {
        if (*shell == "zsh") std::printf("autoload -U +X bashcompinit && bashcompinit\n");
        print_bash(*root);
      }
      return Status::ok();
    };
  });
}

}  // namespace driftwood::cli
