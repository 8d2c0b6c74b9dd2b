#include "format/json_text.h"

#include <set>
#include <vector>

namespace driftwood::format {
namespace {

using nlohmann::json;

// First pass: refuses what a tree would hide (duplicate keys) or what is too deep; keeps nothing.
class Checker final : public json::json_sax_t {
 public:
  explicit Checker(const std::string& place) : place_(place) {}
  const Status& status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool start_object(size_t) override {
    keys_.emplace_back();
    return deeper();
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(size_t) override { return deeper(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    status_ = invalid_argument(place_ + ": the key \"" + key.substr(0, 200) +
                               "\" appears twice in one JSON object");
    return false;
  }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    status_ = invalid_argument(place_ + ": not valid JSON near byte " + std::to_string(position));
    return false;
  }

 private:
  bool deeper() {
    if (++depth_ <= kJsonDepth) return true;
    status_ = invalid_argument(place_ + ": JSON nests deeper than " + std::to_string(kJsonDepth));
    return false;
  }
  const std::string& place_;
  Status status_;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;
};

bool scalar_value(const json& j, MetadataValue* v) {
  using Kind = MetadataValue::Kind;
  if (j.is_boolean()) {
    v->kind = Kind::kBool;
    v->boolean = j.get<bool>();
  } else if (j.is_number_unsigned()) {
    v->unsigned_integer = j.get<uint64_t>();
    const bool fits = v->unsigned_integer <= static_cast<uint64_t>(INT64_MAX);
    v->kind = fits ? Kind::kInt : Kind::kUint;
    v->integer = fits ? static_cast<int64_t>(v->unsigned_integer) : 0;
    v->number = static_cast<double>(v->unsigned_integer);
  } else if (j.is_number_integer()) {
    v->kind = Kind::kInt;
    v->integer = j.get<int64_t>();
    v->number = static_cast<double>(v->integer);
  } else if (j.is_number_float()) {
    v->kind = Kind::kFloat;
    v->number = j.get<double>();
  } else if (j.is_string()) {
    v->kind = Kind::kString;
    v->string = j.get<std::string>();
  } else {
    return false;
  }
  return true;
}

bool value_of(const json& j, MetadataValue* v) {
  if (!j.is_array()) return scalar_value(j, v);
  v->kind = MetadataValue::Kind::kArray;
  for (const json& element : j) {
    MetadataValue value;
    if (value_of(element, &value)) v->array.push_back(std::move(value));
  }
  return true;
}

void flatten_into(const json& object, const std::string& prefix, std::map<std::string, MetadataValue>* out) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      flatten_into(value, prefix + key + ".", out);
      continue;
    }
    MetadataValue v;
    if (value_of(value, &v)) out->emplace(prefix + key, std::move(v));
  }
}

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& place) {
  Checker checker(place);
  if (!json::sax_parse(text, &checker)) {
    if (!checker.status().is_ok()) return checker.status();
    return invalid_argument(place + ": not valid JSON");
  }
  json tree = json::parse(text, nullptr, false);
  if (tree.is_discarded()) return invalid_argument(place + ": not valid JSON");
  return tree;
}

std::map<std::string, MetadataValue> flatten_json(const json& object) {
  std::map<std::string, MetadataValue> out;
  flatten_into(object, "", &out);
  return out;
}

}  // namespace driftwood::format
