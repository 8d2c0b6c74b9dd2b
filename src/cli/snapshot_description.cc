#include "cli/snapshot_description.h"

#include <algorithm>
#include <cstring>

#include "actor/actor_sections.h"
#include "actor/attributes.h"
#include "cli/model_locator.h"
#include "format/checkpoint.h"
#include "text/tokenizer.h"

namespace driftwood::cli {
namespace {

using snapshot::StoredSection;
using snapshot::StoredTensor;

std::string attribute(const StoredSection& section, const std::string& key) {
  const auto it = section.attributes.find(key);
  return it == section.attributes.end() ? std::string() : it->second;
}

// A number if it is one, else the text.
Json value_of(const std::string& text) {
  int64_t number = 0;
  uint64_t large = 0;
  if (actor::parse_i64(text, &number)) return number;
  if (actor::parse_u64(text, &large)) return large;
  return text;
}

std::string text(const StoredSection& section, const std::string& key) {
  const std::string escaped = attribute(section, key);
  std::string bytes;
  return actor::unescape(escaped, &bytes) ? bytes : escaped;
}

// A list of escaped texts, each with '=' before it.
std::vector<std::string> texts(const StoredSection& section, const std::string& key) {
  std::vector<std::string> list;
  if (attribute(section, key).empty()) return list;
  for (const std::string& item : actor::split(attribute(section, key))) {
    std::string bytes;
    if (item.size() > 1 && actor::unescape(std::string_view(item).substr(1), &bytes)) list.push_back(bytes);
  }
  return list;
}

// "1,2,3 4,5,6" as objects with those keys. What is no such record is left out, and told in `problems`.
Json records(const StoredSection& section, const std::string& key, std::initializer_list<const char*> names,
             Json* problems) {
  Json list = Json::array();
  if (attribute(section, key).empty()) return list;
  for (const std::string& item : actor::split(attribute(section, key))) {
    const std::vector<std::string> parts = actor::split(item, ',');
    int64_t number = 0;
    const bool numbers = std::all_of(
        parts.begin(), parts.end(), [&](const std::string& part) { return actor::parse_i64(part, &number); });
    if (parts.size() != names.size() || !numbers) {
      problems->push_back("section '" + section.name + "', attribute '" + key + "': '" + item +
                          "' is no record");
      continue;
    }
    Json record = Json::object();
    size_t i = 0;
    for (const char* name : names) record[name] = value_of(parts[i++]);
    list.push_back(std::move(record));
  }
  return list;
}

Json actor_json(const StoredSection& section) {
  Json out;
  out["name"] = text(section, "name");
  for (const char* key : {"epoch", "sequence", "handlers_run", "started", "messages_dropped",
                          "tokens_appended", "tokens_generated"}) {
    out[key] = value_of(attribute(section, key));
  }
  out["last_error"] = text(section, "last_error");
  out["args"] = texts(section, "args");
  Json variables = Json::array();  // values may be secrets
  for (const std::string& pair : texts(section, "env")) variables.push_back(pair.substr(0, pair.find('=')));
  out["env"] = std::move(variables);
  Json folders = Json::array();
  for (const std::string& grant : texts(section, "folders")) {
    folders.push_back({{"guest_path", grant.substr(1)}, {"writable", grant[0] == 'w'}});
  }
  out["folders"] = std::move(folders);
  return out;
}

Json limits_json(const StoredSection& section) {
  Json out = Json::object();
  constexpr std::string_view kPrefix = "limit_";
  for (const auto& [key, value] : section.attributes) {
    if (key.starts_with(kPrefix)) out[key.substr(kPrefix.size())] = value_of(value);
  }
  return out;
}

Json mailbox_json(const StoredSection* section) {
  Json out = Json::array();
  const StoredTensor* table = section == nullptr ? nullptr : section->find("table");
  if (table == nullptr || table->dtype != DType::kU64 || table->piece_bytes != 0) return out;
  for (size_t at = 0; at + 32 <= table->bytes.size(); at += 32) {
    uint64_t row[4];
    std::memcpy(row, table->bytes.data() + at, sizeof row);
    out.push_back({{"sender", row[0]}, {"bytes", row[3]}});
  }
  return out;
}

Json session_json(const StoredSection& section) {
  constexpr size_t kLastTokens = 32;
  Json out;
  out["section"] = section.name;
  const std::vector<int32_t> tokens = tokens_of(section);
  out["tokens"] = tokens.size();
  for (const char* key : {"computed", "capacity", "handle", "generating", "masked", "max_tokens"}) {
    out[key] = value_of(attribute(section, key));
  }
  for (const char* key : {"temperature", "top_k", "top_p", "min_p", "seed", "stream"}) {
    out["sampling"][key] = attribute(section, key);  // as texts: exact
  }
  const StoredTensor* kv = section.find("kv");
  out["kv_blocks"] = kv == nullptr || kv->shape.empty() ? 0 : kv->shape[0];
  out["kv_bytes"] = kv == nullptr ? 0 : bytes_of(*kv);
  const size_t count = std::min(kLastTokens, tokens.size());
  out["last_tokens"] = std::vector<int32_t>(tokens.end() - static_cast<std::ptrdiff_t>(count), tokens.end());
  return out;
}

uint64_t section_bytes(const StoredSection& section) {
  uint64_t total = 0;
  for (const StoredTensor& tensor : section.tensors) total += bytes_of(tensor);
  return total;
}

// The model named, if it is that one, or any on this machine that is.
Result<std::shared_ptr<const format::Checkpoint>> find_checkpoint(const std::string& model,
                                                                  const std::string& fingerprint) {
  std::vector<std::string> paths;
  if (const auto named = locate_model(model); named.is_ok()) paths.push_back(*named);
  for (const KnownModel& known : list_models()) paths.push_back(known.path);
  for (const std::string& path : paths) {
    auto checkpoint = format::open_checkpoint(path);
    if (checkpoint.is_ok() && (*checkpoint)->fingerprint_hex() == fingerprint) return checkpoint;
  }
  return not_found("the model with fingerprint " + short_hash(fingerprint) + " is not at hand (--model)");
}

}  // namespace

std::vector<int32_t> tokens_of(const StoredSection& section) {
  const StoredTensor* tensor = section.find("tokens");
  if (tensor == nullptr || tensor->dtype != DType::kI32 || tensor->piece_bytes != 0) return {};
  std::vector<int32_t> ids(tensor->bytes.size() / sizeof(int32_t));
  if (!ids.empty()) std::memcpy(ids.data(), tensor->bytes.data(), ids.size() * sizeof(int32_t));
  return ids;
}

Json describe_snapshot(const SnapshotView& view) {
  Json out;
  out["hash"] = view.hash();
  out["parent"] = view.origin().parent;
  out["created_ns"] = view.origin().created_ns;
  out["notes"] = view.origin().notes;
  for (const snapshot::IdentityField& field : snapshot::identity_fields()) {
    out["identity"][field.name] = view.identity().*field.value;
  }
  Json problems = Json::array();
  if (const StoredSection* section = view.find(actor::names::kActor)) {
    out["actor"] = actor_json(*section);
    out["limits"] = limits_json(*section);
    out["timers"] = records(*section, "timers", {"tag", "remaining_ns"}, &problems);
    out["generates"] =
        records(*section, "generates", {"tag", "serial", "session", "stop_at_end", "max_tokens", "produced"},
                &problems);
  }
  out["mailbox"] = mailbox_json(view.find(actor::names::kMailbox));
  out["sessions"] = Json::array();
  uint64_t total = 0;
  out["sizes"] = Json::object();
  for (const StoredSection& section : view.sections()) {
    if (section.kind == "session") out["sessions"].push_back(session_json(section));
    out["sizes"][section.name] = section_bytes(section);
    total += section_bytes(section);
  }
  out["sizes"]["total"] = total;
  out["problems"] = std::move(problems);
  return out;
}

Result<std::string> text_of_tokens(const std::string& model, const std::string& fingerprint,
                                   std::span<const int32_t> ids) {
  DW_ASSIGN_OR_RETURN(const auto checkpoint, find_checkpoint(model, fingerprint));
  DW_ASSIGN_OR_RETURN(const auto tokenizer, text::Tokenizer::from_checkpoint(*checkpoint));
  for (const int32_t id : ids) {
    if (id < 0 || id >= tokenizer->vocab_size()) return invalid_argument("ids are not the model's");
  }
  DW_ASSIGN_OR_RETURN(const std::string bytes, tokenizer->decode(ids.data(), ids.size(), true));
  text::Utf8Assembler assembler;
  std::string whole = assembler.push(bytes);
  whole += assembler.finish();
  return whole;
}

}  // namespace driftwood::cli
