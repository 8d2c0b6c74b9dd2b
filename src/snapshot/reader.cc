#include "snapshot/reader.h"

#include <algorithm>

#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

Status wrong_digest(const std::string& place, const Digest& found, const Digest& wanted) {
  return data_loss(place + ": damaged: its BLAKE3 is " + to_hex(found) + ", it should be " + to_hex(wanted));
}

void expect_padding(const uint8_t* begin, uint64_t bytes, uint64_t extent_bytes, const std::string& place,
                    ContentsCheck* check) {
  check->expect_zeros({begin + bytes, extent_bytes - bytes}, [place, bytes](uint64_t other) {
    return data_loss(place + ": damaged: its padding is not zero at byte " + std::to_string(bytes + other));
  });
}

}  // namespace

const StoredTensor* StoredSection::find(std::string_view tensor) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == tensor; });
  return found == tensors.end() ? nullptr : &*found;
}

const StoredSection* Snapshot::find(std::string_view section) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const auto& s) { return s.name == section; });
  return found == sections_.end() ? nullptr : &*found;
}

Result<std::unique_ptr<Snapshot>> Snapshot::read(ByteSpan bytes, const std::string& name) {
  DW_ASSIGN_OR_RETURN(DecodedHeader decoded, decode_header(bytes, name));
  std::unique_ptr<Snapshot> snapshot(new Snapshot(name, bytes));
  snapshot->place_sections(decoded);
  snapshot->identity_ = std::move(decoded.header.identity);
  snapshot->origin_ = std::move(decoded.header.origin);
  snapshot->hash_ = decoded.hash;
  return snapshot;
}

Result<std::unique_ptr<const Snapshot>> Snapshot::parse(ByteSpan bytes, const std::string& name) {
  DW_ASSIGN_OR_RETURN(std::unique_ptr<const Snapshot> snapshot, read(bytes, name));
  return snapshot;
}

Result<std::unique_ptr<const Snapshot>> Snapshot::open(const std::string& path) {
  DW_ASSIGN_OR_RETURN(std::shared_ptr<const os::MappedFile> file, os::MappedFile::open(path));
  DW_ASSIGN_OR_RETURN(std::unique_ptr<Snapshot> snapshot, read(file->bytes(), path));
  snapshot->file_ = std::move(file);
  return std::unique_ptr<const Snapshot>(std::move(snapshot));
}

void Snapshot::place_sections(const DecodedHeader& decoded) {
  auto placement = decoded.placements.begin();
  for (const DirectorySection& section : decoded.header.sections) {
    StoredSection stored;
    static_cast<SectionDescription&>(stored) = section;
    for (const DirectoryTensor& tensor : section.tensors) {
      StoredTensor t;
      static_cast<DirectoryTensor&>(t) = tensor;
      t.full_name = placement->name;
      t.file_offset = decoded.data_start + placement->begin;
      t.extent_bytes = placement->extent_bytes;
      t.bytes = bytes_.subspan(t.file_offset, placement->bytes);
      ++placement;
      if (t.piece_bytes != 0) {
        t.piece_hashes_offset = decoded.data_start + placement->begin;
        t.piece_hashes = bytes_.subspan(t.piece_hashes_offset, placement->bytes);
        ++placement;
      }
      stored.tensors.push_back(std::move(t));
    }
    sections_.push_back(std::move(stored));
  }
}

Status Snapshot::check_identity(const Identity& expected, std::span<const std::string_view> exempt) const {
  return snapshot::check_identity(identity_, expected, exempt, name_);
}

void Snapshot::expect_tensor(const StoredTensor& t, ContentsCheck* check) const {
  const std::string place = name_ + ": tensor '" + t.full_name;
  expect_padding(t.bytes.data(), t.bytes.size(), t.extent_bytes, place + "'", check);
  const ByteSpan whole = t.piece_bytes == 0 ? t.bytes : t.piece_hashes;
  const std::string of = t.piece_bytes == 0 ? place + "'" : place + ".hashes'";
  check->expect_digest(whole, t.digest,
                       [of, &t](const Digest& found) { return wrong_digest(of, found, t.digest); });
  if (t.piece_bytes == 0) return;
  expect_padding(whole.data(), whole.size(), padded_bytes(whole.size()), of, check);
  expect_pieces(t, check);
}

void Snapshot::expect_pieces(const StoredTensor& t, ContentsCheck* check) const {
  const auto* digests = reinterpret_cast<const Digest*>(t.piece_hashes.data());
  const uint64_t pieces = t.piece_hashes.size() / sizeof(Digest);
  for (uint64_t i = 0; i < pieces; ++i) {
    const uint64_t begin = i * t.piece_bytes;
    const ByteSpan piece = t.bytes.subspan(begin, std::min<uint64_t>(t.piece_bytes, t.bytes.size() - begin));
    check->expect_digest(piece, digests[i], [this, &t, i, digests](const Digest& found) {
      return wrong_digest(name_ + ": tensor '" + t.full_name + "', piece " + std::to_string(i) +
                              " (from its byte " + std::to_string(i * t.piece_bytes) + ")",
                          found, digests[i]);
    });
  }
}

void Snapshot::expect_contents(ContentsCheck* check) const {
  for (const StoredSection& section : sections_) {
    for (const StoredTensor& tensor : section.tensors) expect_tensor(tensor, check);
  }
}

Status Snapshot::verify_tensor(const StoredTensor& tensor, int threads) const {
  ContentsCheck check;
  expect_tensor(tensor, &check);
  return check.run(threads);
}

Status Snapshot::verify_contents(int threads) const {
  ContentsCheck check;
  expect_contents(&check);
  return check.run(threads);
}

}  // namespace driftwood::snapshot
