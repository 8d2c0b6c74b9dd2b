#include "format/gguf_metadata.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "format/gguf.h"

static_assert(std::endian::native == std::endian::little, "model files are little-endian and read in place");

namespace driftwood::format {
namespace {

enum GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
  kTypeCount
};

// Least bytes a value of each type takes, to refuse absurd array lengths before anything is reserved.
constexpr uint64_t kLeastBytes[kTypeCount] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

class Reader {
 public:
  Reader(ByteReader& bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Status read_key(std::string* key, MetadataValue* value, uint64_t index) {
    const std::string place = file_ + ": metadata key " + std::to_string(index);
    uint64_t length = 0;
    std::string_view text;
    if (!bytes_.read(&length)) return data_loss(place + ": the file ends before it (truncated)");
    if (length == 0 || length > GgufLimits::kKeyBytes) {
      return invalid_argument(place + ": its name has " + std::to_string(length) +
                              " bytes, allowed are 1 to " + std::to_string(GgufLimits::kKeyBytes));
    }
    if (!bytes_.read_bytes(length, &text))
      return data_loss(place + ": the file ends in its name (truncated)");
    if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
      return invalid_argument(place + ": its name holds control characters");
    }
    *key = text;
    place_ = file_ + ": metadata key '" + *key + "'";
    uint32_t type = 0;
    if (!bytes_.read(&type)) return truncated();
    return read_value(type, 0, value);
  }

 private:
  Status truncated() const { return data_loss(place_ + ": the file ends inside its value (truncated)"); }

  template <typename T>
  Status read_integer(MetadataValue* value) {
    T x{};
    if (!bytes_.read(&x)) return truncated();
    value->number = static_cast<double>(x);
    if constexpr (std::numeric_limits<T>::is_signed) {
      value->kind = MetadataValue::Kind::kInt;
      value->integer = x;
      value->unsigned_integer = x < 0 ? 0 : static_cast<uint64_t>(x);
    } else {
      value->kind = MetadataValue::Kind::kUint;
      value->unsigned_integer = x;
      value->integer = x <= static_cast<uint64_t>(INT64_MAX) ? static_cast<int64_t>(x) : 0;
    }
    return Status::ok();
  }

  template <typename T>
  Status read_float(MetadataValue* value) {
    T x{};
    if (!bytes_.read(&x)) return truncated();
    value->kind = MetadataValue::Kind::kFloat;
    value->number = static_cast<double>(x);
    return Status::ok();
  }

  Status read_bool(MetadataValue* value) {
    uint8_t x = 0;
    if (!bytes_.read(&x)) return truncated();
    if (x > 1)
      return invalid_argument(place_ + ": a bool holds " + std::to_string(x) + ", allowed are 0 and 1");
    value->kind = MetadataValue::Kind::kBool;
    value->boolean = x == 1;
    return Status::ok();
  }

  Status read_string(MetadataValue* value) {
    uint64_t length = 0;
    std::string_view text;
    if (!bytes_.read(&length)) return truncated();
    if (!bytes_.read_bytes(length, &text)) {
      return data_loss(place_ + ": a string claims " + std::to_string(length) + " bytes and " +
                       std::to_string(bytes_.remaining()) + " are left in the file (truncated or corrupt)");
    }
    value->kind = MetadataValue::Kind::kString;
    value->string = text;
    return Status::ok();
  }

  Status read_array(int depth, MetadataValue* value) {
    if (depth >= GgufLimits::kArrayDepth) {
      return invalid_argument(place_ + ": arrays nest deeper than " +
                              std::to_string(GgufLimits::kArrayDepth));
    }
    uint32_t type = 0;
    uint64_t count = 0;
    if (!bytes_.read(&type) || !bytes_.read(&count)) return truncated();
    if (type >= kTypeCount) return unknown_type(type);
    if (count > bytes_.remaining() / kLeastBytes[type]) {
      return data_loss(place_ + ": an array claims " + std::to_string(count) + " values and the file has " +
                       std::to_string(bytes_.remaining()) + " bytes left (truncated or corrupt)");
    }
    if (count > GgufLimits::kArrayValues - array_values_) {
      return resource_exhausted(place_ + ": the arrays of the file hold more than " +
                                std::to_string(GgufLimits::kArrayValues) + " values");
    }
    array_values_ += count;
    value->kind = MetadataValue::Kind::kArray;
    value->array.resize(static_cast<size_t>(count));
    for (MetadataValue& element : value->array) DW_RETURN_IF_ERROR(read_value(type, depth + 1, &element));
    return Status::ok();
  }

  Status unknown_type(uint32_t type) const {
    return invalid_argument(place_ + ": value type " + std::to_string(type) +
                            " is unknown, types are 0 to 12");
  }

  Status read_value(uint32_t type, int depth, MetadataValue* value) {
    switch (type) {
      case kU8:
        return read_integer<uint8_t>(value);
      case kI8:
        return read_integer<int8_t>(value);
      case kU16:
        return read_integer<uint16_t>(value);
      case kI16:
        return read_integer<int16_t>(value);
      case kU32:
        return read_integer<uint32_t>(value);
      case kI32:
        return read_integer<int32_t>(value);
      case kU64:
        return read_integer<uint64_t>(value);
      case kI64:
        return read_integer<int64_t>(value);
      case kF32:
        return read_float<float>(value);
      case kF64:
        return read_float<double>(value);
      case kBool:
        return read_bool(value);
      case kString:
        return read_string(value);
      case kArray:
        return read_array(depth, value);
      default:
        return unknown_type(type);
    }
  }

  ByteReader& bytes_;
  const std::string& file_;
  std::string place_;
  uint64_t array_values_ = 0;
};

}  // namespace

Result<std::map<std::string, MetadataValue>> read_gguf_metadata(ByteReader& bytes, uint64_t count,
                                                                const std::string& file) {
  std::map<std::string, MetadataValue> metadata;
  Reader reader(bytes, file);
  for (uint64_t i = 0; i < count; ++i) {
    std::string key;
    MetadataValue value;
    DW_RETURN_IF_ERROR(reader.read_key(&key, &value, i));
    const auto [place, inserted] = metadata.emplace(std::move(key), std::move(value));
    if (!inserted) return invalid_argument(file + ": metadata key '" + place->first + "' appears twice");
  }
  return metadata;
}

}  // namespace driftwood::format
