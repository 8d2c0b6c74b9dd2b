#include "snapshot/pack_file.h"

#include <algorithm>
#include <charconv>

#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

// LENGTH of "PREFIXLENGTH", or nothing.
std::optional<uint64_t> length_of(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(prefix.size());
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (length == 0 || length > kMaxPieceBytes || std::to_string(length) != digits) return std::nullopt;
  return length;
}

}  // namespace

Result<std::shared_ptr<PackFile>> PackFile::open(const std::string& path, const Digest& name) {
  DW_ASSIGN_OR_RETURN(std::shared_ptr<const os::MappedFile> file, os::MappedFile::open(path, {false, true}));
  std::shared_ptr<PackFile> pack(new PackFile(path, name));
  DW_RETURN_IF_ERROR(pack->read(file->bytes()));
  pack->file_ = std::move(file);
  return pack;
}

Result<std::shared_ptr<PackFile>> PackFile::parse(ByteSpan bytes, const std::string& path,
                                                  const Digest& name) {
  std::shared_ptr<PackFile> pack(new PackFile(path, name));
  DW_RETURN_IF_ERROR(pack->read(bytes));
  return pack;
}

Status PackFile::read(ByteSpan bytes) {
  bytes_ = bytes;
  DW_ASSIGN_OR_RETURN(container_, Snapshot::parse(bytes, path_));
  if (container_->hash() != to_hex(name_)) {
    return data_loss(path_ + ": is not the pack that its name tells: its hash is " + container_->hash());
  }
  if (container_->sections().size() != 1 || container_->sections()[0].name != kPackSection ||
      container_->sections()[0].kind != kPackKind) {
    return invalid_argument(path_ + ": is a snapshot, but not a pack");
  }
  const std::vector<StoredTensor>& tensors = container_->sections()[0].tensors;
  for (size_t i = 0; i < tensors.size();) {
    size_t used = 1;
    DW_RETURN_IF_ERROR(add_class(tensors[i], i + 1 < tensors.size() ? &tensors[i + 1] : nullptr, &used));
    i += used;
  }
  return Status::ok();
}

Status PackFile::add_class(const StoredTensor& tensor, const StoredTensor* next, size_t* used) {
  const std::string place = path_ + ": tensor '" + tensor.full_name + "'";
  const std::optional<uint64_t> length = length_of(tensor.name, kPackPieces);
  const uint64_t stride = padded_bytes(length.value_or(0));
  if (!length.has_value() || tensor.dtype != DType::kU8 || tensor.shape.size() != 2 ||
      static_cast<uint64_t>(tensor.shape[1]) != stride || tensor.piece_bytes != stride) {
    return invalid_argument(place + ": a pack holds no such tensor");
  }
  PieceClass entry{*length, stride, tensor.file_offset, static_cast<uint64_t>(tensor.shape[0])};
  entry.tensor = &tensor;
  ByteSpan digests = tensor.piece_hashes;
  if (stride != *length) {
    if (next == nullptr || next->name != kPackDigests + std::to_string(*length) ||
        next->dtype != DType::kU8 || next->piece_bytes != 0 ||
        next->shape != std::vector<int64_t>{tensor.shape[0], 32}) {
      return invalid_argument(place + ": the digests of its pieces do not follow it");
    }
    digests = next->bytes;
    *used = 2;
  }
  DW_CHECK(digests.size() == entry.count * sizeof(Digest), "one digest a piece");
  entry.digests = reinterpret_cast<const Digest*>(digests.data());
  classes_.push_back(entry);
  return Status::ok();
}

std::optional<PackFile::Position> PackFile::find(uint64_t offset) const {
  auto after = std::upper_bound(classes_.begin(), classes_.end(), offset,
                                [](uint64_t at, const PieceClass& c) { return at < c.begin; });
  while (after != classes_.begin()) {
    const PieceClass& in = *--after;
    if (in.count == 0) continue;  // begins where the next does
    const uint64_t distance = offset - in.begin;
    if (distance % in.stride != 0 || distance / in.stride >= in.count) return std::nullopt;
    return Position{&in, distance / in.stride};
  }
  return std::nullopt;
}

void PackFile::expect_contents(ContentsCheck* check) const {
  container_->expect_contents(check);
  for (const PieceClass& in : classes_) {
    if (in.length == in.stride) continue;
    for (uint64_t i = 0; i < in.count; ++i) {
      const auto fault = [this, &in, i] {
        return data_loss(path_ + ": tensor '" + in.tensor->full_name + "', piece " + std::to_string(i) +
                         ": its true bytes are not what its digest tells");
      };
      check->expect_digest(piece({&in, i}), in.digests[i], [fault](const Digest&) { return fault(); });
      check->expect_zeros(padding({&in, i}), [fault](uint64_t) { return fault(); });
    }
  }
}

}  // namespace driftwood::snapshot
