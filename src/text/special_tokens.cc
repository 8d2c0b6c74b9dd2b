#include "text/special_tokens.h"

#include "text/side_json.h"

namespace driftwood::text {
namespace {

using format::Checkpoint;
using format::MetadataValue;
using nlohmann::json;

std::optional<int64_t> id_of(const MetadataValue* value) {
  if (value == nullptr) return std::nullopt;
  if (value->kind == MetadataValue::Kind::kInt) return value->integer;
  if (value->kind == MetadataValue::Kind::kUint && value->unsigned_integer <= INT32_MAX) {
    return static_cast<int64_t>(value->unsigned_integer);
  }
  return std::nullopt;
}

// A number, or a list of them.
void add_ids(const MetadataValue* value, std::vector<int64_t>& ids) {
  if (const std::optional<int64_t> id = id_of(value)) ids.push_back(*id);
  if (value == nullptr || value->kind != MetadataValue::Kind::kArray) return;
  for (const MetadataValue& item : value->array) {
    if (const std::optional<int64_t> id = id_of(&item)) ids.push_back(*id);
  }
}

void add_ids(const json& object, const char* key, std::vector<int64_t>& ids) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  if (found->is_number_integer()) ids.push_back(found->get<int64_t>());
  if (!found->is_array()) return;
  for (const json& item : *found) {
    if (item.is_number_integer()) ids.push_back(item.get<int64_t>());
  }
}

// "<s>", or {"content": "<s>", ...}
std::optional<std::string> token_text(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return std::nullopt;
  const auto content = found->find("content");
  if (content == found->end() || !content->is_string()) return std::nullopt;
  return content->get<std::string>();
}

SpecialTokens from_gguf(const Checkpoint& checkpoint) {
  const std::string prefix = "tokenizer.ggml.";
  SpecialTokens special;
  special.bos_id = id_of(checkpoint.metadata(prefix + "bos_token_id"));
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    add_ids(checkpoint.metadata(prefix + key), special.end_ids);
  }
  const MetadataValue* tokens = checkpoint.metadata(prefix + "tokens");
  for (const char* name : {"bos", "eos", "padding", "unknown"}) {
    const std::optional<int64_t> id = id_of(checkpoint.metadata(prefix + name + "_token_id"));
    if (tokens == nullptr || !id || *id < 0 || static_cast<size_t>(*id) >= tokens->array.size()) continue;
    const std::string variable = name == std::string("padding")   ? "pad"
                                 : name == std::string("unknown") ? "unk"
                                                                  : name;
    special.template_variables[variable + "_token"] = tokens->array[*id].string;
  }
  return special;
}

Result<SpecialTokens> from_folder(const Checkpoint& checkpoint) {
  SpecialTokens special;
  DW_ASSIGN_OR_RETURN(const std::optional<json> config, side_json(checkpoint, "tokenizer_config.json"));
  if (config) {
    for (const char* key : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
      if (std::optional<std::string> text = token_text(*config, key)) special.template_variables[key] = *text;
    }
    special.bos_text = token_text(*config, "bos_token");
    if (std::optional<std::string> eos = token_text(*config, "eos_token")) special.end_texts.push_back(*eos);
  }
  DW_ASSIGN_OR_RETURN(const std::optional<json> generation, side_json(checkpoint, "generation_config.json"));
  std::vector<int64_t> bos;
  if (generation) {
    add_ids(*generation, "eos_token_id", special.end_ids);
    add_ids(*generation, "bos_token_id", bos);
  }
  for (const char* prefix : {"", "text_config."}) {
    add_ids(checkpoint.metadata(prefix + std::string("eos_token_id")), special.end_ids);
    add_ids(checkpoint.metadata(prefix + std::string("bos_token_id")), bos);
  }
  if (!bos.empty()) special.bos_id = bos.front();
  return special;
}

}  // namespace

Result<SpecialTokens> read_special_tokens(const Checkpoint& checkpoint) {
  if (checkpoint.format() == format::FileFormat::kGguf) return from_gguf(checkpoint);
  return from_folder(checkpoint);
}

}  // namespace driftwood::text
