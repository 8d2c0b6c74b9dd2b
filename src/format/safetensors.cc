#include "format/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "format/checked_size.h"
#include "format/json_text.h"
#include "format/looks_like.h"

namespace driftwood::format {
namespace {

using nlohmann::json;

constexpr DType kReadTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                                DType::kI16, DType::kI32, DType::kI64,  DType::kU8,  DType::kU16,
                                DType::kU32, DType::kU64, DType::kBool};
constexpr std::string_view kUnreadTypes[] = {"F8_E4M3", "F8_E5M2", "F8_E8M0",     "F6_E2M3",    "F6_E3M2",
                                             "F4",      "C64",     "F8_E4M3FNUZ", "F8_E5M2FNUZ"};

Result<DType> dtype_of(const std::string& text, const std::string& place) {
  for (const DType type : kReadTypes) {
    if (dtype_name(type) == text) return type;
  }
  for (const std::string_view unread : kUnreadTypes) {
    if (unread == text) return unimplemented(place + ": has dtype " + text + ", which is not read");
  }
  return invalid_argument(place + ": has the unknown dtype \"" + text.substr(0, 40) + "\"");
}

struct Entry {
  StoredTensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Status read_shape(const json& shape, const std::string& place, std::vector<int64_t>* out) {
  if (!shape.is_array()) return invalid_argument(place + ": \"shape\" must be an array");
  if (shape.size() > kSafetensorsDimensions) {
    return invalid_argument(place + ": has " + std::to_string(shape.size()) + " dimensions, at most " +
                            std::to_string(kSafetensorsDimensions) + " are read");
  }
  for (const json& d : shape) {
    if (!d.is_number_unsigned() || d.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      return invalid_argument(place + ": \"shape\" must hold whole numbers of at least 0");
    }
    out->push_back(d.get<int64_t>());
  }
  return Status::ok();
}

Result<Entry> read_entry(const std::string& name, const json& value, const std::string& file) {
  const std::string place = file + ": tensor '" + name.substr(0, 200) + "'";
  if (name.empty()) return invalid_argument(file + ": a tensor has an empty name");
  if (!value.is_object()) return invalid_argument(place + ": its entry must be a JSON object");
  const auto dtype = value.find("dtype");
  const auto shape = value.find("shape");
  const auto offsets = value.find("data_offsets");
  if (value.size() != 3 || dtype == value.end() || shape == value.end() || offsets == value.end()) {
    return invalid_argument(place +
                            ": its entry must hold \"dtype\", \"shape\" and \"data_offsets\", nothing else");
  }
  if (!dtype->is_string()) return invalid_argument(place + ": \"dtype\" must be a string");
  Entry entry;
  entry.tensor.name = name;
  DW_ASSIGN_OR_RETURN(entry.tensor.dtype, dtype_of(dtype->get<std::string>(), place));
  DW_RETURN_IF_ERROR(read_shape(*shape, place, &entry.tensor.shape));
  if (!offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned()) {
    return invalid_argument(place + ": \"data_offsets\" must be two whole numbers of at least 0");
  }
  entry.begin = (*offsets)[0].get<uint64_t>();
  entry.end = (*offsets)[1].get<uint64_t>();
  if (entry.end < entry.begin) return invalid_argument(place + ": \"data_offsets\" end before they begin");
  int64_t elements = 0;
  int64_t bytes = 0;
  if (!shape_elements(entry.tensor.shape, &elements) ||
      !multiply(elements, static_cast<int64_t>(dtype_size(entry.tensor.dtype)), &bytes)) {
    return invalid_argument(place + ": its dimensions multiply to more than 2^63");
  }
  if (static_cast<uint64_t>(bytes) != entry.end - entry.begin) {
    return invalid_argument(place + ": its shape and dtype need " + std::to_string(bytes) +
                            " bytes, its \"data_offsets\" span " + std::to_string(entry.end - entry.begin));
  }
  return entry;
}

Status read_metadata(const json& metadata, const std::string& file, std::map<std::string, std::string>* out) {
  const std::string place = file + ": \"__metadata__\"";
  if (!metadata.is_object()) return invalid_argument(place + " must be a JSON object");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string())
      return invalid_argument(place + " must map to strings; \"" + key.substr(0, 100) + "\" does not");
    if (out != nullptr) out->emplace(key, value.get<std::string>());
  }
  return Status::ok();
}

// Offsets must tile the data section exactly.
Status place_entries(std::vector<Entry>& entries, std::span<const uint8_t> data, const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t end = 0;
  const Entry* before = nullptr;
  for (Entry& e : entries) {
    const std::string place = file + ": tensor '" + e.tensor.name + "'";
    const std::string at = " (bytes " + std::to_string(e.begin) + " to " + std::to_string(e.end) + ")";
    if (e.end > data.size()) {
      return data_loss(place + ": lies past the end of the file" + at + "; its data section has " +
                       std::to_string(data.size()) + " bytes (truncated?)");
    }
    if (e.begin < end)
      return invalid_argument(place + ": overlaps tensor '" + before->tensor.name + "'" + at);
    if (e.begin > end) {
      return invalid_argument(place + ": a hole of " + std::to_string(e.begin - end) +
                              " bytes that belongs to no tensor lies before it" + at);
    }
    end = e.end;
    before = &e;
    e.tensor.bytes = data.subspan(static_cast<size_t>(e.begin), static_cast<size_t>(e.end - e.begin));
  }
  if (end != data.size()) {
    return invalid_argument(file + ": " + std::to_string(data.size() - end) +
                            " bytes follow the last tensor");
  }
  return Status::ok();
}

Result<std::string_view> header_of(std::span<const uint8_t> bytes, const std::string& file) {
  if (bytes.size() < 10) {
    return data_loss(file + ": not a safetensors file: " + looks_like(bytes));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (bytes[8] != '{' || length < 2)
    return invalid_argument(file + ": not a safetensors file: " + looks_like(bytes));
  if (length > kSafetensorsHeaderBytes) {
    return invalid_argument(file + ": its header claims " + std::to_string(length) + " bytes, at most " +
                            std::to_string(kSafetensorsHeaderBytes) + " are allowed");
  }
  if (length > bytes.size() - 8) {
    return data_loss(file + ": its header claims " + std::to_string(length) + " bytes, the file has " +
                     std::to_string(bytes.size()) + " (truncated?)");
  }
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<size_t>(length));
}

// Writers pad with spaces, some by many thousands: looked at eight at a time.
std::string_view without_padding(std::string_view text) {
  constexpr char kSpaces[] = "        ";
  while (text.size() >= 8 && std::memcmp(text.data() + text.size() - 8, kSpaces, 8) == 0)
    text.remove_suffix(8);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::vector<StoredTensor>> parse_safetensors(std::span<const uint8_t> bytes, const std::string& name,
                                                    std::map<std::string, std::string>* metadata) {
  DW_ASSIGN_OR_RETURN(const std::string_view header, header_of(bytes, name));
  DW_ASSIGN_OR_RETURN(const json tree, parse_json(without_padding(header), name + ": header"));
  if (!tree.is_object()) return invalid_argument(name + ": its header must be a JSON object");
  std::vector<Entry> entries;
  for (const auto& [key, value] : tree.items()) {
    if (key == "__metadata__") {
      DW_RETURN_IF_ERROR(read_metadata(value, name, metadata));
      continue;
    }
    DW_ASSIGN_OR_RETURN(Entry entry, read_entry(key, value, name));
    entries.push_back(std::move(entry));
  }
  DW_RETURN_IF_ERROR(place_entries(entries, bytes.subspan(8 + header.size()), name));
  std::vector<StoredTensor> tensors;
  for (Entry& e : entries) tensors.push_back(std::move(e.tensor));
  return tensors;
}

}  // namespace driftwood::format
