#include "format/checkpoint.h"

#include <cmath>
#include <filesystem>

#include "format/folder.h"
#include "format/gguf.h"
#include "format/looks_like.h"
#include "os/mapped_file.h"

namespace driftwood::format {

const char* encoding_name(Encoding encoding) {
  switch (encoding) {
    case Encoding::kDense:
      return "dense";
    case Encoding::kQ4_0:
      return "Q4_0";
    case Encoding::kQ4_1:
      return "Q4_1";
    case Encoding::kQ5_0:
      return "Q5_0";
    case Encoding::kQ5_1:
      return "Q5_1";
    case Encoding::kQ8_0:
      return "Q8_0";
    case Encoding::kMlxAffine:
      return "MLX affine";
  }
  return "?";
}

int64_t TensorInfo::element_count() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return open_folder(path);
  DW_ASSIGN_OR_RETURN(auto file, os::MappedFile::open(path));
  if (is_gguf(file->bytes())) return open_gguf(std::move(file));
  if (is_safetensors(file->bytes())) return open_folder_file(path);
  return invalid_argument(path + ": not a model: " + looks_like(file->bytes()));
}

namespace {

using Kind = MetadataValue::Kind;

Status missing(const Checkpoint& c, const std::string& key) {
  return not_found(c.path() + ": the model's metadata lacks '" + key + "'");
}

Status wrong_kind(const Checkpoint& c, const std::string& key, const char* wanted) {
  return invalid_argument(c.path() + ": metadata '" + key + "' must be " + wanted);
}

std::optional<int64_t> as_int(const MetadataValue& v) {
  if (v.kind == Kind::kInt) return v.integer;
  if (v.kind == Kind::kUint && v.unsigned_integer <= static_cast<uint64_t>(INT64_MAX)) return v.integer;
  // JSON writers may spell a whole number with a point.
  if (v.kind == Kind::kFloat && std::trunc(v.number) == v.number && std::abs(v.number) < 9007199254740992.0) {
    return static_cast<int64_t>(v.number);
  }
  return std::nullopt;
}

std::optional<double> as_float(const MetadataValue& v) {
  if (v.kind == Kind::kInt || v.kind == Kind::kUint || v.kind == Kind::kFloat) return v.number;
  return std::nullopt;
}

}  // namespace

Result<int64_t> metadata_int(const Checkpoint& c, const std::string& key) {
  const MetadataValue* v = c.metadata(key);
  if (v == nullptr) return missing(c, key);
  const auto x = as_int(*v);
  if (!x) return wrong_kind(c, key, "a whole number");
  return *x;
}

Result<double> metadata_float(const Checkpoint& c, const std::string& key) {
  const MetadataValue* v = c.metadata(key);
  if (v == nullptr) return missing(c, key);
  const auto x = as_float(*v);
  if (!x) return wrong_kind(c, key, "a number");
  return *x;
}

Result<std::string> metadata_string(const Checkpoint& c, const std::string& key) {
  const MetadataValue* v = c.metadata(key);
  if (v == nullptr) return missing(c, key);
  if (v->kind != Kind::kString) return wrong_kind(c, key, "a string");
  return v->string;
}

std::optional<int64_t> metadata_int_or(const Checkpoint& c, const std::string& key) {
  const MetadataValue* v = c.metadata(key);
  return v == nullptr ? std::nullopt : as_int(*v);
}

std::optional<double> metadata_float_or(const Checkpoint& c, const std::string& key) {
  const MetadataValue* v = c.metadata(key);
  return v == nullptr ? std::nullopt : as_float(*v);
}

std::optional<std::string> metadata_string_or(const Checkpoint& c, const std::string& key) {
  const MetadataValue* v = c.metadata(key);
  if (v == nullptr || v->kind != Kind::kString) return std::nullopt;
  return v->string;
}

std::optional<bool> metadata_bool_or(const Checkpoint& c, const std::string& key) {
  const MetadataValue* v = c.metadata(key);
  if (v == nullptr || v->kind != Kind::kBool) return std::nullopt;
  return v->boolean;
}

}  // namespace driftwood::format
