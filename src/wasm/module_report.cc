#include "wasm/module_report.h"

#include <nlohmann/json.hpp>

namespace driftwood::wasm {
namespace {

using nlohmann::json;

bool read_texts(const json& object, const char* key, std::vector<std::string>* out) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) return false;
  for (const json& item : *it) {
    if (!item.is_string()) return false;
    out->push_back(item.get<std::string>());
  }
  return true;
}

bool read_exports(const json& object, std::vector<std::string>* out) {
  const auto it = object.find("exports");
  if (it == object.end() || !it->is_array()) return false;
  for (const json& item : *it) {
    const auto kind = item.find("kind");
    const auto name = item.find("name");
    if (kind == item.end() || name == item.end() || !kind->is_string() || !name->is_string()) return false;
    if (*kind == "func") out->push_back(name->get<std::string>());
  }
  return true;
}

bool read_memory(const json& object, ParsedReport* parsed) {
  const auto it = object.find("memory");
  if (it == object.end()) return false;
  if (it->is_null()) return true;
  const auto min = it->find("min");
  if (min == it->end() || !min->is_number_unsigned()) return false;
  parsed->has_memory = true;
  parsed->memory_min_pages = min->get<uint64_t>();
  return true;
}

}  // namespace

Result<ParsedReport> parse_module_report(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  ParsedReport parsed;
  const auto hash = object.is_object() ? object.find("module_hash") : object.end();
  if (!object.is_object() || hash == object.end() || !hash->is_string() ||
      !read_texts(object, "snapshot_blockers", &parsed.report.snapshot_blockers) ||
      !read_texts(object, "notes", &parsed.report.notes) || !read_exports(object, &parsed.report.exports) ||
      !read_memory(object, &parsed)) {
    return internal_error("the bridge's module report is not in the form expected");
  }
  parsed.report.hash_hex = hash->get<std::string>();
  return parsed;
}

}  // namespace driftwood::wasm
