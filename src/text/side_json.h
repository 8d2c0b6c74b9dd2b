// A JSON side file of a model folder, parsed.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "format/checkpoint.h"

namespace driftwood::text {

// Empty if the folder has no such file; invalid_argument if it is not a JSON object.
inline Result<std::optional<nlohmann::json>> side_json(const format::Checkpoint& checkpoint,
                                                       const std::string& name) {
  Result<std::string> file = checkpoint.side_file(name);
  if (!file.is_ok()) {
    if (file.status().code() == Code::kNotFound) return std::optional<nlohmann::json>();
    return file.status();
  }
  nlohmann::json parsed = nlohmann::json::parse(*file, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return invalid_argument(checkpoint.path() + ": " + name + " is not a JSON object");
  return std::optional<nlohmann::json>(std::move(parsed));
}

}  // namespace driftwood::text
