#include "snapshot/header.h"

#include <optional>
#include <set>

#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

constexpr size_t kHashAt = 8 + kHeaderStart.size() + kFormatNumber.size() + kHashStart.size();
constexpr size_t kHashDigits = 64;

bool is_name(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") == std::string::npos;
}

Status check_label(const std::string& text, const char* what, const std::string& place) {
  if (!text.empty() && text.size() <= kMaxNameBytes) return Status::ok();
  return invalid_argument(place + ": its " + what + " has " + std::to_string(text.size()) + " bytes; 1 to " +
                          std::to_string(kMaxNameBytes) + " are allowed");
}

// Adds what the tensor takes in the file, its piece hashes included, to `total`.
Status check_tensor(const DirectoryTensor& tensor, const std::string& place, uint64_t* total) {
  DW_RETURN_IF_ERROR(check_label(tensor.layout, "layout", place));
  const std::optional<uint64_t> bytes = tensor_bytes(tensor.dtype, tensor.shape);
  if (!bytes.has_value()) return invalid_argument(place + ": its shape is negative, too long or too large");
  *total += padded_bytes(*bytes);
  const uint64_t piece = tensor.piece_bytes;
  if (piece != 0) {
    if (piece % kMinPieceBytes != 0 || piece > kMaxPieceBytes) {
      return invalid_argument(place + ": hashed in pieces of " + std::to_string(piece) +
                              " bytes; they must be a multiple of 4 KiB and at most 1 GiB");
    }
    *total += padded_bytes(piece_count(*bytes, piece) * sizeof(Digest));
  }
  if (*total > uint64_t{1} << 62) return invalid_argument(place + ": the snapshot exceeds 2^62 bytes");
  return Status::ok();
}

}  // namespace

Status check_header(const Header& header, const std::string& place) {
  Digest parent;
  if (!header.origin.parent.empty() && !from_hex(header.origin.parent, &parent)) {
    return invalid_argument(place + ": \"parent\" must be empty or 64 hex digits");
  }
  std::set<std::string> sections;
  std::set<std::string> tensors;
  uint64_t total = 0;
  for (const DirectorySection& section : header.sections) {
    const std::string at = place + ": section '" + section.name.substr(0, kMaxNameBytes) + "'";
    if (!is_name(section.name)) return invalid_argument(at + ": not a name (1 to 200 of a-z 0-9 _ . -)");
    if (!sections.insert(section.name).second) return invalid_argument(at + ": appears twice");
    DW_RETURN_IF_ERROR(check_label(section.kind, "kind", at));
    for (const DirectoryTensor& tensor : section.tensors) {
      const std::string full = section.name + "." + tensor.name;
      const std::string in = place + ": tensor '" + full.substr(0, 2 * kMaxNameBytes) + "'";
      if (!is_name(tensor.name)) return invalid_argument(in + ": not a name (1 to 200 of a-z 0-9 _ . -)");
      DW_RETURN_IF_ERROR(check_tensor(tensor, in, &total));
      if (!tensors.insert(full).second ||
          (tensor.piece_bytes != 0 && !tensors.insert(full + ".hashes").second)) {
        return invalid_argument(in + ": its name, or that of its hashes, appears twice");
      }
      if (tensors.size() > kMaxTensors) {
        return invalid_argument(place + ": more than " + std::to_string(kMaxTensors) + " tensors");
      }
    }
  }
  return Status::ok();
}

std::vector<Placement> place_tensors(const Header& header) {
  std::vector<Placement> placements;
  uint64_t at = 0;
  const auto place = [&](std::string name, DType dtype, const std::vector<int64_t>& shape) {
    Placement p{std::move(name), dtype, stored_shape(dtype, shape), at, *tensor_bytes(dtype, shape)};
    p.extent_bytes = padded_bytes(p.bytes);
    at += p.extent_bytes;
    placements.push_back(std::move(p));
  };
  for (const DirectorySection& section : header.sections) {
    for (const DirectoryTensor& tensor : section.tensors) {
      place(section.name + "." + tensor.name, tensor.dtype, tensor.shape);
      if (tensor.piece_bytes == 0) continue;
      const uint64_t pieces = piece_count(placements.back().bytes, tensor.piece_bytes);
      place(section.name + "." + tensor.name + ".hashes", DType::kU8,
            {static_cast<int64_t>(pieces), static_cast<int64_t>(sizeof(Digest))});
    }
  }
  return placements;
}

Digest header_digest(ByteSpan header) {
  const std::vector<uint8_t> zeros(kHashDigits, '0');
  const ByteSpan chunks[] = {header.first(kHashAt), zeros, header.subspan(kHashAt + kHashDigits)};
  return blake3(chunks);
}

}  // namespace driftwood::snapshot
