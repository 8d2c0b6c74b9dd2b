#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_locator.h"

namespace driftwood::cli {

void add_models(CLI::App& app, Action* action) {
  CLI::App* cmd = app.add_subcommand("models", "List the models found on this machine");
  cmd->footer("Example: driftwood models --json");
  auto json = std::make_shared<bool>(false);
  cmd->add_flag("--json", *json, "Print JSON");
  cmd->callback([=] {
    *action = [=]() -> Status {
      const std::vector<KnownModel> models = list_models();
      if (*json) {
        nlohmann::ordered_json out = nlohmann::ordered_json::array();
        for (const KnownModel& m : models) {
          out.push_back(
              {{"name", m.name}, {"path", m.path}, {"origin", m.origin}, {"size_bytes", m.size_bytes}});
        }
        std::printf("%s\n", out.dump(2).c_str());
        return Status::ok();
      }
      if (models.empty()) std::printf("no models yet; `make run` fetches smollm2-135m\n");
      for (const KnownModel& m : models) {
        std::printf("%-32s %9.1f MB  %-18s %s\n", m.name.c_str(), m.size_bytes / 1e6, m.origin.c_str(),
                    m.path.c_str());
      }
      return Status::ok();
    };
  });
}

}  // namespace driftwood::cli
