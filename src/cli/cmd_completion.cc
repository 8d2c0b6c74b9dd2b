#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"

namespace driftwood::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* sub : commands_of(app)) words += sub->get_name() + " ";
  return words;
}

std::string options_of(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  return words;
}

// One command: files and its options; one that has subcommands: those.
void print_bash_case(const std::string& pattern, const CLI::App& app) {
  const bool parent = !commands_of(app).empty();
  std::printf("    %s) COMPREPLY=($(compgen %s-W '%s' -- \"$cur\"));;\n", pattern.c_str(),
              parent ? "" : "-f ", ((parent ? words_of(app) : "") + options_of(app)).c_str());
}

void print_bash(const CLI::App& app) {
  std::printf(
      "_driftwood() {\n  local cur=${COMP_WORDS[COMP_CWORD]}\n"
      "  local at=\"${COMP_WORDS[*]:1:COMP_CWORD-1} \"\n  case \"$at\" in\n");
  for (const CLI::App* sub : commands_of(app)) {
    for (const CLI::App* nested : commands_of(*sub)) {
      print_bash_case("\"" + sub->get_name() + " " + nested->get_name() + " \"*", *nested);
    }
    print_bash_case("\"" + sub->get_name() + " \"*", *sub);
  }
  std::printf(
      "    *) COMPREPLY=($(compgen -W '%s' -- \"$cur\"));;\n  esac\n}\ncomplete -o filenames -F _driftwood "
      "driftwood\n",
      (words_of(app) + options_of(app)).c_str());
}

void print_fish_options(const std::string& condition, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      std::printf("complete -c driftwood -n '%s' -l %s\n", condition.c_str(), name.c_str());
    }
  }
}

void print_fish(const CLI::App& app) {
  for (const CLI::App* sub : commands_of(app)) {
    std::printf("complete -c driftwood -n __fish_use_subcommand -a %s -d '%s'\n", sub->get_name().c_str(),
                sub->get_description().c_str());
    const std::string chosen = "__fish_seen_subcommand_from " + sub->get_name();
    const std::string nested_words = words_of(*sub);
    if (nested_words.empty()) {
      print_fish_options(chosen, *sub);
      continue;
    }
    for (const CLI::App* nested : commands_of(*sub)) {
      std::printf("complete -c driftwood -n '%s; and not __fish_seen_subcommand_from %s' -a %s -d '%s'\n",
                  chosen.c_str(), nested_words.c_str(), nested->get_name().c_str(),
                  nested->get_description().c_str());
      print_fish_options(chosen + "; and __fish_seen_subcommand_from " + nested->get_name(), *nested);
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
