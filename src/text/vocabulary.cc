#include "text/vocabulary.h"

#include <string>
#include <string_view>
#include <vector>

#include "text/bridge_call.h"

namespace driftwood::text {
namespace {

using format::Checkpoint;
using format::MetadataValue;
using Kind = MetadataValue::Kind;

constexpr const char* kPrefix = "tokenizer.ggml.";
constexpr int64_t kAbsent = -1;

Status bad_key(const Checkpoint& checkpoint, const std::string& key, const std::string& what) {
  return invalid_argument(checkpoint.path() + ": " + kPrefix + key + " " + what);
}

const MetadataValue* find(const Checkpoint& checkpoint, const std::string& key) {
  return checkpoint.metadata(kPrefix + key);
}

Result<std::string_view> text_or_empty(const Checkpoint& checkpoint, const std::string& key) {
  const MetadataValue* value = find(checkpoint, key);
  if (value == nullptr) return std::string_view();
  if (value->kind != Kind::kString) return bad_key(checkpoint, key, "is not a string");
  return std::string_view(value->string);
}

Result<std::vector<dwb_str>> texts(const Checkpoint& checkpoint, const std::string& key) {
  const MetadataValue* value = find(checkpoint, key);
  if (value == nullptr) return std::vector<dwb_str>();
  if (value->kind != Kind::kArray) return bad_key(checkpoint, key, "is not an array");
  std::vector<dwb_str> out;
  out.reserve(value->array.size());
  for (const MetadataValue& item : value->array) {
    if (item.kind != Kind::kString) return bad_key(checkpoint, key, "holds something other than strings");
    out.push_back({item.string.data(), item.string.size()});
  }
  return out;
}

Result<std::vector<int32_t>> token_types(const Checkpoint& checkpoint, size_t tokens) {
  const MetadataValue* value = find(checkpoint, "token_type");
  if (value == nullptr) return std::vector<int32_t>();
  if (value->kind != Kind::kArray || value->array.size() != tokens) {
    return bad_key(checkpoint, "token_type",
                   "is not an array as long as the tokens, " + std::to_string(tokens));
  }
  std::vector<int32_t> out;
  out.reserve(tokens);
  for (const MetadataValue& item : value->array) {
    const bool number = item.kind == Kind::kInt || item.kind == Kind::kUint;
    if (!number || item.number < 0 || item.number > INT32_MAX) {
      return bad_key(checkpoint, "token_type", "holds something other than small whole numbers");
    }
    out.push_back(static_cast<int32_t>(item.number));
  }
  return out;
}

Result<int64_t> id_or_absent(const Checkpoint& checkpoint, const std::string& key) {
  const MetadataValue* value = find(checkpoint, key);
  if (value == nullptr) return kAbsent;
  const bool number = value->kind == Kind::kInt || value->kind == Kind::kUint;
  if (!number || value->number < 0 || value->number > INT32_MAX) {
    return bad_key(checkpoint, key, "is not the id of a token");
  }
  return static_cast<int64_t>(value->number);
}

int32_t flag_or_absent(const Checkpoint& checkpoint, const std::string& key) {
  const MetadataValue* value = find(checkpoint, key);
  if (value == nullptr || value->kind != Kind::kBool) return -1;
  return value->boolean ? 1 : 0;
}

Result<TokenizerHandle> from_gguf(const Checkpoint& checkpoint) {
  DW_ASSIGN_OR_RETURN(const std::string_view model, text_or_empty(checkpoint, "model"));
  if (model.empty())
    return not_found(checkpoint.path() + ": the file carries no tokenizer (tokenizer.ggml.model)");
  if (model != "gpt2") {
    return unimplemented(checkpoint.path() + ": tokenizer.ggml.model is '" + std::string(model) +
                         "'; of GGUF vocabularies only 'gpt2' (byte-level BPE) is supported");
  }
  DW_ASSIGN_OR_RETURN(const std::vector<dwb_str> tokens, texts(checkpoint, "tokens"));
  if (tokens.empty()) return bad_key(checkpoint, "tokens", "is missing or empty");
  DW_ASSIGN_OR_RETURN(const std::vector<int32_t> types, token_types(checkpoint, tokens.size()));
  DW_ASSIGN_OR_RETURN(const std::vector<dwb_str> merges, texts(checkpoint, "merges"));
  DW_ASSIGN_OR_RETURN(const std::string_view pre, text_or_empty(checkpoint, "pre"));
  dwb_bpe_spec spec{};
  spec.tokens = tokens.data();
  spec.n_tokens = tokens.size();
  spec.types = types.empty() ? nullptr : types.data();
  spec.merges = merges.data();
  spec.n_merges = merges.size();
  spec.pre = {pre.data(), pre.size()};
  DW_ASSIGN_OR_RETURN(spec.bos_id, id_or_absent(checkpoint, "bos_token_id"));
  DW_ASSIGN_OR_RETURN(spec.eos_id, id_or_absent(checkpoint, "eos_token_id"));
  spec.add_bos = flag_or_absent(checkpoint, "add_bos_token");
  spec.add_eos = flag_or_absent(checkpoint, "add_eos_token");
  spec.ignore_merges = -1;
  BridgeBytes error;
  TokenizerHandle handle(dwb_tokenizer_from_bpe(&spec, error.out()));
  if (!handle) return invalid_argument(checkpoint.path() + ": tokenizer: " + error.str());
  return handle;
}

Result<TokenizerHandle> from_folder(const Checkpoint& checkpoint) {
  Result<std::string> json = checkpoint.side_file("tokenizer.json");
  if (!json.is_ok()) return json.status();
  BridgeBytes error;
  TokenizerHandle handle(
      dwb_tokenizer_from_json(reinterpret_cast<const uint8_t*>(json->data()), json->size(), error.out()));
  if (!handle) return invalid_argument(checkpoint.path() + ": " + error.str());
  return handle;
}

}  // namespace

Result<TokenizerHandle> load_vocabulary(const Checkpoint& checkpoint) {
  return checkpoint.format() == format::FileFormat::kGguf ? from_gguf(checkpoint) : from_folder(checkpoint);
}

}  // namespace driftwood::text
