#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "format/json_text.h"
#include "format/looks_like.h"
#include "format/safetensors.h"
#include "snapshot/container.h"
#include "snapshot/header.h"
#include "snapshot/header_scan.h"

namespace driftwood::snapshot {
namespace {

using nlohmann::json;
using Texts = std::map<std::string, std::string>;

// The start of the file: what it is, which number, where data begins, and the header's hash.
Result<uint64_t> check_start(ByteSpan file, const std::string& name, Digest* hash) {
  if (file.empty()) return data_loss(name + ": is empty, not a snapshot");
  const size_t hash_at = 8 + kHeaderStart.size() + kFormatNumber.size() + kHashStart.size();
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (file.size() < 8 + kHeaderStart.size() || text.substr(8, kHeaderStart.size()) != kHeaderStart) {
    if (format::is_safetensors(file))
      return invalid_argument(name + ": a safetensors file, but not a snapshot");
    return invalid_argument(name + ": not a snapshot: " + format::looks_like(file));
  }
  const std::string_view rest = text.substr(8 + kHeaderStart.size());
  const std::string_view number = rest.substr(0, std::min(rest.find('"'), size_t{20}));
  if (number != kFormatNumber) {
    return failed_precondition(name + ": is of snapshot format " + std::string(number) +
                               ", this program reads format " + std::string(kFormatNumber));
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  if (length > kMaxHeaderBytes - 8 || (length + 8) % kUnitBytes != 0) {
    return data_loss(name + ": header: its length " + std::to_string(length) +
                     " does not end on a multiple of 64 KiB up to 16 MiB");
  }
  if (length + 8 > file.size()) {
    return data_loss(name + ": header: claims " + std::to_string(length) + " bytes, the file has " +
                     std::to_string(file.size()) + " (truncated?)");
  }
  const std::string_view hex = text.substr(hash_at, 2 * sizeof(Digest));
  if (rest.substr(kFormatNumber.size(), kHashStart.size()) != kHashStart || !from_hex(hex, hash)) {
    return data_loss(name + ": header: its hash is not in its place");
  }
  const Digest found = header_digest(file.first(length + 8));
  if (found != *hash) {
    return data_loss(name + ": header: damaged: its BLAKE3 is " + to_hex(found) + ", it claims " +
                     to_hex(*hash));
  }
  return length + 8;
}

Status read_texts(const json& object, const std::string& place, Texts* out) {
  if (!object.is_object()) return invalid_argument(place + ": must be a JSON object");
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string())
      return invalid_argument(place + ": \"" + key.substr(0, 100) + "\" must be a text");
    out->emplace(key, value.get<std::string>());
  }
  return Status::ok();
}

Result<std::string> text_of(const json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    return invalid_argument(place + ": \"" + key + "\" must be a text");
  }
  return found->get<std::string>();
}

Result<DType> dtype_of(const std::string& text, const std::string& place) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    if (dtype_name(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  }
  return invalid_argument(place + ": has the unknown dtype \"" + text.substr(0, 40) + "\"");
}

Result<DirectoryTensor> read_tensor(const json& value, const std::string& place) {
  if (!value.is_object()) return invalid_argument(place + ": a tensor must be a JSON object");
  DirectoryTensor tensor;
  DW_ASSIGN_OR_RETURN(tensor.name, text_of(value, "name", place));
  const std::string at = place + ": tensor '" + tensor.name.substr(0, kMaxNameBytes) + "'";
  DW_ASSIGN_OR_RETURN(const std::string dtype, text_of(value, "dtype", at));
  DW_ASSIGN_OR_RETURN(tensor.dtype, dtype_of(dtype, at));
  DW_ASSIGN_OR_RETURN(tensor.layout, text_of(value, "layout", at));
  DW_ASSIGN_OR_RETURN(const std::string hex, text_of(value, "blake3", at));
  if (!from_hex(hex, &tensor.digest)) return invalid_argument(at + ": \"blake3\" must be 64 hex digits");
  const auto shape = value.find("shape");
  if (shape == value.end() || !shape->is_array())
    return invalid_argument(at + ": \"shape\" must be an array");
  for (const json& d : *shape) {
    if (!d.is_number_unsigned() || d.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return invalid_argument(at + ": \"shape\" must hold whole numbers of at least 0");
    }
    tensor.shape.push_back(d.get<int64_t>());
  }
  const auto piece = value.find("piece_bytes");
  if (piece != value.end()) {
    if (!piece->is_number_unsigned() || piece->get<uint64_t>() == 0) {
      return invalid_argument(at + ": \"piece_bytes\" must be a whole number above 0");
    }
    tensor.piece_bytes = piece->get<uint64_t>();
  }
  if (value.size() != (piece == value.end() ? 5U : 6U)) {
    return invalid_argument(at + ": holds a field that format 0 does not know");
  }
  return tensor;
}

Result<DirectorySection> read_section(const json& value, const std::string& place) {
  if (!value.is_object()) return invalid_argument(place + ": a section must be a JSON object");
  DirectorySection section;
  DW_ASSIGN_OR_RETURN(section.name, text_of(value, "name", place));
  const std::string at = place + ": section '" + section.name.substr(0, kMaxNameBytes) + "'";
  DW_ASSIGN_OR_RETURN(section.kind, text_of(value, "kind", at));
  const auto attributes = value.find("attributes");
  const auto tensors = value.find("tensors");
  if (value.size() != 4 || attributes == value.end() || tensors == value.end() || !tensors->is_array()) {
    return invalid_argument(at +
                            ": must hold \"name\", \"kind\", \"attributes\" and \"tensors\", nothing else");
  }
  DW_RETURN_IF_ERROR(read_texts(*attributes, at + ": \"attributes\"", &section.attributes));
  for (const json& t : *tensors) {
    DW_ASSIGN_OR_RETURN(DirectoryTensor tensor, read_tensor(t, at));
    section.tensors.push_back(std::move(tensor));
  }
  return section;
}

// Takes `key` out of the metadata.
Result<std::string> take(Texts* metadata, const char* key, const std::string& name) {
  auto node = metadata->extract(key);
  if (node.empty()) return invalid_argument(name + ": header: has no \"" + key + "\"");
  return std::move(node.mapped());
}

Result<uint64_t> read_number(const std::string& text, const std::string& place) {
  uint64_t value = 0;
  bool good = !text.empty() && (text == "0" || text[0] != '0');
  for (const char c : text) {
    good = good && c >= '0' && c <= '9' && !__builtin_mul_overflow(value, uint64_t{10}, &value) &&
           !__builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value);
  }
  if (!good) return invalid_argument(place + " must be a whole number, not \"" + text.substr(0, 40) + "\"");
  return value;
}

Result<Header> read_metadata(Texts metadata, const std::string& name) {
  Header header;
  for (const char* key : {"driftwood_snapshot", "header_hash"}) {
    DW_ASSIGN_OR_RETURN(const std::string known, take(&metadata, key, name));
    (void)known;  // checked before the text was parsed
  }
  for (const IdentityField& field : identity_fields()) {
    DW_ASSIGN_OR_RETURN(header.identity.*field.value, take(&metadata, field.name, name));
  }
  DW_ASSIGN_OR_RETURN(header.origin.parent, take(&metadata, "parent", name));
  DW_ASSIGN_OR_RETURN(const std::string created, take(&metadata, "created_ns", name));
  DW_ASSIGN_OR_RETURN(header.origin.created_ns, read_number(created, name + ": header: \"created_ns\""));
  const std::string notes_place = name + ": header: \"notes\"";
  DW_ASSIGN_OR_RETURN(const std::string notes, take(&metadata, "notes", name));
  DW_ASSIGN_OR_RETURN(const json notes_tree, format::parse_json(notes, notes_place));
  DW_RETURN_IF_ERROR(read_texts(notes_tree, notes_place, &header.origin.notes));
  const std::string sections_place = name + ": header: \"sections\"";
  DW_ASSIGN_OR_RETURN(const std::string sections, take(&metadata, "sections", name));
  DW_ASSIGN_OR_RETURN(const json tree, format::parse_json(sections, sections_place));
  if (!tree.is_array()) return invalid_argument(sections_place + ": must be a JSON array");
  for (const json& value : tree) {
    DW_ASSIGN_OR_RETURN(DirectorySection section, read_section(value, sections_place));
    header.sections.push_back(std::move(section));
  }
  if (!metadata.empty()) {
    return invalid_argument(name + ": header: holds \"" + metadata.begin()->first.substr(0, 100) +
                            "\", which format 0 does not know");
  }
  return header;
}

// The tensors that safetensors sees must be exactly those of the directory, in their places.
Status compare_tensors(const std::vector<format::StoredTensor>& stored,
                       const std::vector<Placement>& placements, const uint8_t* data,
                       const std::string& name) {
  std::unordered_map<std::string_view, const format::StoredTensor*> by_name;
  for (const format::StoredTensor& t : stored) by_name.emplace(t.name, &t);
  for (const Placement& p : placements) {
    const std::string place = name + ": tensor '" + p.name + "'";
    const auto found = by_name.find(p.name);
    if (found == by_name.end()) return invalid_argument(place + ": is in the directory but not in the file");
    const format::StoredTensor& t = *found->second;
    if (t.dtype != p.dtype || t.shape != p.shape) {
      return invalid_argument(place + ": its dtype or shape is not what the directory's, padded, would be");
    }
    if (t.bytes.data() != data + p.begin) {
      return invalid_argument(place + ": begins at byte " + std::to_string(t.bytes.data() - data) +
                              " of the data, it should at " + std::to_string(p.begin));
    }
    by_name.erase(found);
  }
  if (!by_name.empty()) {
    return invalid_argument(name + ": tensor '" +
                            std::string(by_name.begin()->first).substr(0, kMaxNameBytes) +
                            "': is in the file but not in the directory");
  }
  return Status::ok();
}

}  // namespace

Result<DecodedHeader> decode_any_spelling(ByteSpan file, const std::string& name, DecodedHeader decoded) {
  Texts metadata;
  DW_ASSIGN_OR_RETURN(const auto stored, format::parse_safetensors(file, name, &metadata));
  DW_ASSIGN_OR_RETURN(decoded.header, read_metadata(std::move(metadata), name));
  DW_RETURN_IF_ERROR(check_header(decoded.header, name));
  decoded.placements = place_tensors(decoded.header);
  DW_RETURN_IF_ERROR(compare_tensors(stored, decoded.placements, file.data() + decoded.data_start, name));
  return decoded;
}

Result<DecodedHeader> decode_header(ByteSpan file, const std::string& name) {
  DecodedHeader decoded;
  DW_ASSIGN_OR_RETURN(decoded.data_start, check_start(file, name, &decoded.hash));
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, decoded.data_start - 8);
  if (auto scanned = scan_header(text, name); scanned.has_value()) {
    const uint64_t end = scanned->placements.empty()
                             ? 0
                             : scanned->placements.back().begin + scanned->placements.back().extent_bytes;
    if (end == file.size() - decoded.data_start) {
      decoded.header = std::move(scanned->header);
      decoded.placements = std::move(scanned->placements);
      return decoded;
    }
  }
  return decode_any_spelling(file, name, std::move(decoded));
}

}  // namespace driftwood::snapshot
