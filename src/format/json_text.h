// JSON of model files, parsed with limits: valid UTF-8, no duplicate keys in an object, bounded nesting. (The
// library alone would keep the last of two equal keys and say nothing.)
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "format/checkpoint.h"

namespace driftwood::format {

inline constexpr int kJsonDepth = 64;

// `place` stands for the text in messages.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& place);

// Objects become dotted paths; null, and objects inside arrays, are left out.
std::map<std::string, MetadataValue> flatten_json(const nlohmann::json& object);

}  // namespace driftwood::format
