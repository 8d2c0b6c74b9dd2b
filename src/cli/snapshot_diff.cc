#include "cli/snapshot_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "actor/actor_sections.h"
#include "cli/snapshot_description.h"
#include "wasm/frozen_state.h"

namespace driftwood::cli {
namespace {

using snapshot::StoredSection;
using snapshot::StoredTensor;

// The two sides of what is compared.
struct Sides {
  const SnapshotView& a;
  const SnapshotView& b;
};

Json identity_differences(const Sides& sides) {
  Json out = Json::array();
  for (const auto& d : snapshot::identity_differences(sides.a.identity(), sides.b.identity())) {
    out.push_back({{"field", d.field}, {"a", d.found}, {"b", d.expected}});
  }
  return out;
}

void diff_attributes(const StoredSection& a, const StoredSection& b, Json* out) {
  std::set<std::string> keys;
  for (const auto& [key, value] : a.attributes) keys.insert(key);
  for (const auto& [key, value] : b.attributes) keys.insert(key);
  const auto value = [](const StoredSection& section, const std::string& key) {
    const auto it = section.attributes.find(key);
    return it == section.attributes.end() ? Json() : Json(it->second);
  };
  for (const std::string& key : keys) {
    if (value(a, key) == value(b, key)) continue;
    out->push_back({{"section", a.name}, {"key", key}, {"a", value(a, key)}, {"b", value(b, key)}});
  }
}

class MemoryDiff {
 public:
  // Ranges of `a` and `b`, which begin at `offset`; those a few bytes apart are one.
  void compare(uint64_t offset, const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
    constexpr uint64_t kJoin = 16;
    ++pages_;
    bool open = false;  // a range of this page
    uint64_t begin = 0, end = 0;
    for (uint64_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      ++bytes_;
      if (open && i - end > kJoin) {
        add(offset + begin, offset + end);
        open = false;
      }
      if (!open) begin = i;
      open = true;
      end = i + 1;
    }
    if (open) add(offset + begin, offset + end);
  }
  Json json(uint64_t bytes_a, uint64_t bytes_b) const {
    return {{"bytes_a", bytes_a},        {"bytes_b", bytes_b}, {"pages_differing", pages_},
            {"bytes_differing", bytes_}, {"ranges", ranges_},  {"ranges_left_out", left_out_}};
  }

 private:
  void add(uint64_t begin, uint64_t end) {
    if (ranges_.size() < kMostListed) {
      ranges_.push_back({{"begin", begin}, {"end", end}});
    } else {
      ++left_out_;
    }
  }
  uint64_t pages_ = 0, bytes_ = 0, left_out_ = 0;
  Json ranges_ = Json::array();
};

// Any tensor in pieces of bytes.
Result<Json> diff_bytes(const Sides& sides, const StoredTensor& a, const StoredTensor& b) {
  const auto digests_a = sides.a.digests(a), digests_b = sides.b.digests(b);
  const uint64_t bytes_a = bytes_of(a), bytes_b = bytes_of(b);
  if (digests_a == digests_b && bytes_a == bytes_b) return Json();
  MemoryDiff diff;
  for (uint64_t i = 0; i < std::min(digests_a.size(), digests_b.size()); ++i) {
    if (digests_a[i] == digests_b[i]) continue;
    const uint64_t at = i * a.piece_bytes;
    const uint64_t length = std::min({a.piece_bytes, bytes_a - at, bytes_b - at});
    std::vector<uint8_t> page_a(length), page_b(length);
    DW_RETURN_IF_ERROR(sides.a.read(a, at, page_a));
    DW_RETURN_IF_ERROR(sides.b.read(b, at, page_b));
    diff.compare(at, page_a, page_b);
  }
  return diff.json(bytes_a, bytes_b);
}

// Rows of four u64: index, type, low bits, high bits.
std::map<uint64_t, std::array<uint64_t, 3>> globals_of(const StoredSection* section) {
  std::map<uint64_t, std::array<uint64_t, 3>> globals;
  const StoredTensor* values = section == nullptr ? nullptr : section->find("values");
  if (values == nullptr || values->dtype != DType::kU64 || values->piece_bytes != 0) return globals;
  for (size_t at = 0; at + 32 <= values->bytes.size(); at += 32) {
    uint64_t row[4];
    std::memcpy(row, values->bytes.data() + at, sizeof row);
    globals[row[0]] = {row[1], row[2], row[3]};
  }
  return globals;
}

Json global_json(const std::array<uint64_t, 3>& global) {
  const bool known = global[0] <= static_cast<uint64_t>(wasm::GlobalType::kV128);
  Json out = {{"type", known ? wasm::global_type_name(static_cast<wasm::GlobalType>(global[0])) : "?"},
              {"bits", global[1]}};
  if (global[2] != 0) out["high_bits"] = global[2];
  return out;
}

Json diff_globals(const Sides& sides) {
  const auto a = globals_of(sides.a.find(actor::names::kGlobals));
  const auto b = globals_of(sides.b.find(actor::names::kGlobals));
  Json out = Json::array();
  std::set<uint64_t> indices;
  for (const auto& [index, value] : a) indices.insert(index);
  for (const auto& [index, value] : b) indices.insert(index);
  for (const uint64_t index : indices) {
    const auto in_a = a.find(index);
    const auto in_b = b.find(index);
    if (in_a != a.end() && in_b != b.end() && in_a->second == in_b->second) continue;
    if (out.size() >= kMostListed) break;
    out.push_back({{"index", index},
                   {"a", in_a == a.end() ? Json() : global_json(in_a->second)},
                   {"b", in_b == b.end() ? Json() : global_json(in_b->second)}});
  }
  return out;
}

Json diff_tokens(const StoredSection& a, const StoredSection& b) {
  const std::vector<int32_t> ids_a = tokens_of(a), ids_b = tokens_of(b);
  if (ids_a == ids_b) return {};
  const auto [in_a, in_b] = std::mismatch(ids_a.begin(), ids_a.end(), ids_b.begin(), ids_b.end());
  return {{"count_a", ids_a.size()},
          {"count_b", ids_b.size()},
          {"first_position", in_a - ids_a.begin()},
          {"a", in_a == ids_a.end() ? Json() : Json(*in_a)},
          {"b", in_b == ids_b.end() ? Json() : Json(*in_b)}};
}

std::vector<float> logits_of(const StoredSection& section) {
  const StoredTensor* tensor = section.find("logits");
  if (tensor == nullptr || tensor->dtype != DType::kF32 || tensor->piece_bytes != 0) return {};
  std::vector<float> values(tensor->bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), values.size() * sizeof(float));
  return values;
}

Json diff_logits(const StoredSection& a, const StoredSection& b) {
  const std::vector<float> values_a = logits_of(a), values_b = logits_of(b);
  if (values_a.size() != values_b.size()) return {{"count_a", values_a.size()}, {"count_b", values_b.size()}};
  uint64_t differing = 0, first = 0;
  float largest = 0;
  for (size_t i = 0; i < values_a.size(); ++i) {
    if (std::memcmp(&values_a[i], &values_b[i], sizeof(float)) == 0) continue;
    if (++differing == 1) first = i;
    largest = std::max(largest, std::fabs(values_a[i] - values_b[i]));
  }
  if (differing == 0) return {};
  return {{"differing", differing}, {"first", first}, {"largest", largest}};
}

Result<Json> diff_session(const Sides& sides, const StoredSection& a, const StoredSection& b) {
  Json out = {{"section", a.name}};
  DW_ASSIGN_OR_RETURN(Json kv, diff_kv(sides.a, a, sides.b, b));
  Json tokens = diff_tokens(a, b), logits = diff_logits(a, b);
  if (!tokens.is_null()) out["tokens"] = std::move(tokens);
  if (!kv.is_null()) out["kv"] = std::move(kv);
  if (!logits.is_null()) out["logits"] = std::move(logits);
  return out.size() > 1 ? out : Json();
}

// Tensors that have no comparison of their own.
Result<Json> diff_tensors(const Sides& sides, const StoredSection& a, const StoredSection& b) {
  const std::set<std::string> special = a.kind == "session" ? std::set<std::string>{"tokens", "kv", "logits"}
                                        : a.name == actor::names::kGlobals ? std::set<std::string>{"values"}
                                        : a.name == actor::names::kMemory  ? std::set<std::string>{"pages"}
                                                                           : std::set<std::string>{};
  std::set<std::string> names;
  for (const StoredTensor& tensor : a.tensors) names.insert(tensor.name);
  for (const StoredTensor& tensor : b.tensors) names.insert(tensor.name);
  Json out = Json::array();
  for (const std::string& name : names) {
    if (special.contains(name)) continue;
    const StoredTensor* in_a = a.find(name);
    const StoredTensor* in_b = b.find(name);
    const std::string full_name = a.name + "." + name;
    if (in_a == nullptr || in_b == nullptr) {
      out.push_back({{"tensor", full_name}, {"only_in", in_a == nullptr ? "b" : "a"}});
      continue;
    }
    if (in_a->dtype != in_b->dtype || in_a->shape != in_b->shape) {
      out.push_back({{"tensor", full_name}, {"shape_a", in_a->shape}, {"shape_b", in_b->shape}});
      continue;
    }
    std::vector<uint8_t> bytes_a(bytes_of(*in_a)), bytes_b(bytes_of(*in_b));
    DW_RETURN_IF_ERROR(sides.a.read(*in_a, 0, bytes_a));
    DW_RETURN_IF_ERROR(sides.b.read(*in_b, 0, bytes_b));
    const auto first = std::mismatch(bytes_a.begin(), bytes_a.end(), bytes_b.begin()).first;
    if (first != bytes_a.end())
      out.push_back({{"tensor", full_name}, {"first_byte", first - bytes_a.begin()}});
  }
  return out;
}

Status diff_section(const Sides& sides, const StoredSection& a, const StoredSection& b, Json* out) {
  diff_attributes(a, b, &(*out)["attributes"]);
  DW_ASSIGN_OR_RETURN(const Json tensors, diff_tensors(sides, a, b));
  for (const Json& tensor : tensors) (*out)["tensors"].push_back(tensor);
  if (a.kind == "session" && b.kind == "session") {
    DW_ASSIGN_OR_RETURN(const Json session, diff_session(sides, a, b));
    if (!session.is_null()) (*out)["sessions"].push_back(session);
  }
  if (a.name != actor::names::kMemory) return Status::ok();
  const StoredTensor* pages_a = a.find("pages");
  const StoredTensor* pages_b = b.find("pages");
  if (pages_a != nullptr && pages_b != nullptr && pages_a->piece_bytes == pages_b->piece_bytes &&
      pages_a->piece_bytes != 0) {
    DW_ASSIGN_OR_RETURN((*out)["memory"], diff_bytes(sides, *pages_a, *pages_b));
  }
  return Status::ok();
}

}  // namespace

Result<Json> diff_snapshots(const SnapshotView& a, const SnapshotView& b) {
  const Sides sides{a, b};
  Json out = {{"a", a.hash()},
              {"b", b.hash()},
              {"equal", false},
              {"identity", identity_differences(sides)},
              {"sections", Json::array()},
              {"attributes", Json::array()},
              {"memory", nullptr},
              {"globals", diff_globals(sides)},
              {"sessions", Json::array()},
              {"tensors", Json::array()}};
  std::set<std::string> names;
  for (const StoredSection& section : a.sections()) names.insert(section.name);
  for (const StoredSection& section : b.sections()) names.insert(section.name);
  for (const std::string& name : names) {
    const StoredSection* in_a = a.find(name);
    const StoredSection* in_b = b.find(name);
    if (in_a == nullptr || in_b == nullptr) {
      out["sections"].push_back({{"section", name}, {"only_in", in_a == nullptr ? "b" : "a"}});
      continue;
    }
    DW_RETURN_IF_ERROR(diff_section(sides, *in_a, *in_b, &out));
  }
  out["equal"] = out["identity"].empty() && out["sections"].empty() && out["attributes"].empty() &&
                 out["memory"].is_null() && out["globals"].empty() && out["sessions"].empty() &&
                 out["tensors"].empty();
  return out;
}

}  // namespace driftwood::cli
