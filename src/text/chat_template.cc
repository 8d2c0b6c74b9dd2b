// Chat templates: where a checkpoint keeps them, and what they are rendered with.
//
// A template is untrusted: the bridge bounds its work, depth and output, and its size is bounded here, at
// loading.
#include <optional>

#include "text/bridge_call.h"
#include "text/side_json.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"

namespace driftwood::text {
namespace {

using format::Checkpoint;
using format::MetadataValue;
using nlohmann::json;

constexpr size_t kMaxTemplateBytes = size_t{4} << 20;
constexpr const char* kDefault = "default";
constexpr const char* kToolUse = "tool_use";

// Templates by name. Files with several have one for requests with tools besides the default.
using Templates = std::map<std::string, std::string>;

Result<Templates> gguf_templates(const Checkpoint& checkpoint) {
  Templates templates;
  const std::string key = "tokenizer.chat_template";
  for (const auto& [name, suffix] : {std::pair(kDefault, ""), std::pair(kToolUse, ".tool_use")}) {
    const MetadataValue* value = checkpoint.metadata(key + suffix);
    if (value == nullptr) continue;
    if (value->kind != MetadataValue::Kind::kString) {
      return invalid_argument(checkpoint.path() + ": " + key + suffix + " is not a string");
    }
    templates[name] = value->string;
  }
  return templates;
}

// A text, or a list of {"name", "template"}.
Result<Templates> templates_in(const json& value, const std::string& where) {
  Templates templates;
  if (value.is_string()) {
    templates[kDefault] = value.get<std::string>();
    return templates;
  }
  const Status bad =
      invalid_argument(where + ": chat_template is neither a string nor a list of named templates");
  if (!value.is_array()) return bad;
  for (const json& entry : value) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("template") || !entry["template"].is_string()) {
      return bad;
    }
    templates[entry["name"].get<std::string>()] = entry["template"].get<std::string>();
  }
  return templates;
}

// A file of its own wins over tokenizer_config.json.
Result<Templates> folder_templates(const Checkpoint& checkpoint) {
  Result<std::string> file = checkpoint.side_file("chat_template.jinja");
  if (file.is_ok()) return Templates{{kDefault, std::move(*file)}};
  if (file.status().code() != Code::kNotFound) return file.status();
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    DW_ASSIGN_OR_RETURN(const std::optional<json> config, side_json(checkpoint, name));
    if (!config || !config->contains("chat_template") || (*config)["chat_template"].is_null()) continue;
    return templates_in((*config)["chat_template"], checkpoint.path() + ": " + name);
  }
  return Templates{};
}

// `text` must be one JSON array, or the context around it could be forged. The parser is not recursive.
Status check_array(std::string_view text, const char* what) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '[' || !json::accept(text)) {
    return invalid_argument(std::string(what) + " is not a JSON array");
  }
  return Status::ok();
}

class BridgeTemplate final : public ChatTemplate {
 public:
  BridgeTemplate(std::string path, Templates templates, const SpecialTokens& special)
      : path_(std::move(path)), templates_(std::move(templates)) {
    for (const auto& [name, text] : special.template_variables) {
      variables_ += ",\"" + name + "\":" + json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    }
  }

  Result<std::string> render(std::string_view messages_json, bool add_generation_prompt,
                             std::string_view tools_json) const override {
    DW_RETURN_IF_ERROR(check_array(messages_json, "messages"));
    if (!tools_json.empty()) DW_RETURN_IF_ERROR(check_array(tools_json, "tools"));
    // Put together as text: the order of keys and the spelling of numbers stay as the caller wrote them.
    std::string context = "{\"messages\":";
    context += messages_json;
    context += add_generation_prompt ? ",\"add_generation_prompt\":true" : ",\"add_generation_prompt\":false";
    if (!tools_json.empty()) {
      context += ",\"tools\":";
      context += tools_json;
    }
    context += variables_;
    context += '}';
    const std::string& source = chosen(!tools_json.empty());
    BridgeBytes out;
    BridgeBytes error;
    const dwb_status code = dwb_template_render(source.data(), source.size(), context.data(), context.size(),
                                                out.out(), error.out());
    if (code != DWB_OK) return bridge_status(code, error).with_context(path_);
    return out.str();
  }

 private:
  const std::string& chosen(bool with_tools) const {
    const auto tool_use = templates_.find(kToolUse);
    if (with_tools && tool_use != templates_.end()) return tool_use->second;
    return templates_.at(kDefault);
  }

  std::string path_;
  Templates templates_;
  std::string variables_;  // ,"bos_token":"<s>", ...
};

}  // namespace

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::from_checkpoint(const Checkpoint& checkpoint) {
  const bool gguf = checkpoint.format() == format::FileFormat::kGguf;
  DW_ASSIGN_OR_RETURN(Templates templates, gguf ? gguf_templates(checkpoint) : folder_templates(checkpoint));
  if (!templates.contains(kDefault)) {
    return not_found(checkpoint.path() + ": the model has no chat template (a base model has none)");
  }
  for (const auto& [name, text] : templates) {
    if (text.size() > kMaxTemplateBytes) {
      return invalid_argument(checkpoint.path() + ": the chat template '" + name + "' has " +
                              std::to_string(text.size()) + " bytes; at most " +
                              std::to_string(kMaxTemplateBytes) + " are allowed");
    }
  }
  DW_ASSIGN_OR_RETURN(const SpecialTokens special, read_special_tokens(checkpoint));
  return std::shared_ptr<const ChatTemplate>(
      std::make_shared<BridgeTemplate>(checkpoint.path(), std::move(templates), special));
}

}  // namespace driftwood::text
