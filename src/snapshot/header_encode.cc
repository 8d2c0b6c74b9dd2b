#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "snapshot/container.h"
#include "snapshot/header.h"

namespace driftwood::snapshot {
namespace {

using nlohmann::ordered_json;

ordered_json texts(const std::map<std::string, std::string>& pairs) {
  ordered_json object = ordered_json::object();
  for (const auto& [key, value] : pairs) object[key] = value;
  return object;
}

ordered_json directory(const Header& header) {
  ordered_json sections = ordered_json::array();
  for (const DirectorySection& section : header.sections) {
    ordered_json tensors = ordered_json::array();
    for (const DirectoryTensor& t : section.tensors) {
      ordered_json entry = {
          {"name", t.name}, {"dtype", dtype_name(t.dtype)}, {"shape", t.shape}, {"layout", t.layout}};
      if (t.piece_bytes != 0) entry["piece_bytes"] = t.piece_bytes;
      entry["blake3"] = to_hex(t.digest);
      tensors.push_back(std::move(entry));
    }
    sections.push_back({{"name", section.name},
                        {"kind", section.kind},
                        {"attributes", texts(section.attributes)},
                        {"tensors", std::move(tensors)}});
  }
  return sections;
}

ordered_json metadata(const Header& header) {
  ordered_json m;
  m["driftwood_snapshot"] = kFormatNumber;
  m["header_hash"] = std::string(2 * sizeof(Digest), '0');
  for (const IdentityField& field : identity_fields()) m[field.name] = header.identity.*field.value;
  m["parent"] = header.origin.parent;
  m["created_ns"] = std::to_string(header.origin.created_ns);
  m["notes"] = texts(header.origin.notes).dump();
  m["sections"] = directory(header).dump();
  return m;
}

// The library throws where a text is not UTF-8; this is its edge.
Result<std::string> header_text(const Header& header, const std::string& place) {
  try {
    ordered_json tree;
    tree["__metadata__"] = metadata(header);
    for (const Placement& p : place_tensors(header)) {
      tree[p.name] = {{"dtype", dtype_name(p.dtype)},
                      {"shape", p.shape},
                      {"data_offsets", {p.begin, p.begin + p.extent_bytes}}};
    }
    return tree.dump();
  } catch (const nlohmann::json::exception&) {
    return invalid_argument(place + ": a text of its identity, notes or attributes is not UTF-8");
  }
}

}  // namespace

Result<EncodedHeader> encode_header(const Header& header, const std::string& place, uint64_t min_bytes) {
  DW_RETURN_IF_ERROR(check_header(header, place));
  DW_ASSIGN_OR_RETURN(const std::string text, header_text(header, place));
  const uint64_t size = padded_bytes(std::max<uint64_t>(8 + text.size(), min_bytes));
  if (size > kMaxHeaderBytes) {
    return resource_exhausted(place + ": its header has " + std::to_string(text.size()) + " bytes, at most " +
                              std::to_string(kMaxHeaderBytes) + " are allowed");
  }
  EncodedHeader encoded;
  encoded.bytes.assign(size, ' ');
  const uint64_t length = size - 8;
  for (size_t i = 0; i < 8; ++i) encoded.bytes[i] = static_cast<uint8_t>(length >> (8 * i));
  std::memcpy(encoded.bytes.data() + 8, text.data(), text.size());
  encoded.hash = header_digest(encoded.bytes);
  const size_t hash_at = 8 + kHeaderStart.size() + kFormatNumber.size() + kHashStart.size();
  DW_CHECK(text.compare(hash_at - 8, 2 * sizeof(Digest), std::string(2 * sizeof(Digest), '0')) == 0,
           "the header begins otherwise than its readers expect");
  const std::string hex = to_hex(encoded.hash);
  std::memcpy(encoded.bytes.data() + hash_at, hex.data(), hex.size());
  return encoded;
}

}  // namespace driftwood::snapshot
