#include "wasm/module_report.h"

#include <nlohmann/json.hpp>

namespace driftwood::wasm {
namespace {

using nlohmann::json;

constexpr GlobalType kGlobalTypes[] = {GlobalType::kI32, GlobalType::kI64, GlobalType::kF32, GlobalType::kF64,
                                       GlobalType::kV128};

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
  const auto max = it->find("max");
  if (max == it->end() || (!max->is_null() && !max->is_number_unsigned())) return false;
  if (!max->is_null()) parsed->memory_max_pages = max->get<uint64_t>();
  return true;
}

bool read_globals(const json& object, ParsedReport* parsed) {
  const auto it = object.find("globals");
  if (it == object.end() || !it->is_array()) return false;
  for (const json& item : *it) {
    const auto index = item.find("index");
    const auto type = item.find("type");
    if (index == item.end() || type == item.end() || !index->is_number_unsigned() || !type->is_string())
      return false;
    bool known = false;
    for (const GlobalType candidate : kGlobalTypes) {
      if (*type != global_type_name(candidate)) continue;
      parsed->globals.push_back(GlobalDeclaration{index->get<uint32_t>(), candidate});
      known = true;
    }
    if (!known) parsed->has_reference_globals = true;
  }
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
      !read_memory(object, &parsed) || !read_globals(object, &parsed)) {
    return internal_error("the bridge's module report is not in the form expected");
  }
  parsed.report.hash_hex = hash->get<std::string>();
  return parsed;
}

}  // namespace driftwood::wasm
