#include "snapshot/reader.h"

#include <algorithm>
#include <cstring>

#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

// A digest to compute, what it must be, and whose it is.
struct Expectation {
  const StoredTensor* tensor = nullptr;
  int64_t piece = -1;  // -1: the whole tensor; -2: its hashes
  Digest digest{};
};

Status mismatch(const Expectation& wanted, const Digest& found, const std::string& name) {
  std::string place = name + ": tensor '" + wanted.tensor->full_name + "'";
  if (wanted.piece == -2) place = name + ": tensor '" + wanted.tensor->full_name + ".hashes'";
  if (wanted.piece >= 0) {
    const uint64_t begin = static_cast<uint64_t>(wanted.piece) * wanted.tensor->piece_bytes;
    place += ", piece " + std::to_string(wanted.piece) + " (from its byte " + std::to_string(begin) + ")";
  }
  return data_loss(place + ": damaged: its BLAKE3 is " + to_hex(found) + ", it should be " +
                   to_hex(wanted.digest));
}

Status check_padding(const uint8_t* begin, uint64_t bytes, uint64_t extent_bytes, const std::string& place) {
  const ByteSpan padding(begin + bytes, extent_bytes - bytes);
  const auto found = std::find_if(padding.begin(), padding.end(), [](uint8_t b) { return b != 0; });
  if (found == padding.end()) return Status::ok();
  return data_loss(place + ": damaged: its padding is not zero at byte " +
                   std::to_string(bytes + static_cast<uint64_t>(found - padding.begin())));
}

Status check_paddings(const StoredTensor& t, const std::string& name) {
  const std::string place = name + ": tensor '" + t.full_name;
  DW_RETURN_IF_ERROR(check_padding(t.bytes.data(), t.bytes.size(), t.extent_bytes, place + "'"));
  if (t.piece_bytes == 0) return Status::ok();
  const ByteSpan hashes = t.piece_hashes;
  return check_padding(hashes.data(), hashes.size(), padded_bytes(hashes.size()), place + ".hashes'");
}

void expect_pieces(const StoredTensor& t, std::vector<Expectation>* wanted, std::vector<ByteSpan>* inputs) {
  wanted->push_back({&t, -2, t.digest});
  inputs->push_back(t.piece_hashes);
  const uint64_t pieces = t.piece_hashes.size() / sizeof(Digest);
  for (uint64_t i = 0; i < pieces; ++i) {
    Expectation e{&t, static_cast<int64_t>(i)};
    std::memcpy(e.digest.data(), t.piece_hashes.data() + i * sizeof(Digest), sizeof(Digest));
    wanted->push_back(e);
    const uint64_t begin = i * t.piece_bytes;
    inputs->push_back(t.bytes.subspan(begin, std::min<uint64_t>(t.piece_bytes, t.bytes.size() - begin)));
  }
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

Status Snapshot::verify(std::span<const StoredTensor* const> tensors, int threads) const {
  std::vector<Expectation> wanted;
  std::vector<ByteSpan> inputs;
  for (const StoredTensor* t : tensors) {
    DW_RETURN_IF_ERROR(check_paddings(*t, name_));
    if (t->piece_bytes != 0) {
      expect_pieces(*t, &wanted, &inputs);
      continue;
    }
    wanted.push_back({t, -1, t->digest});
    inputs.push_back(t->bytes);
  }
  std::vector<DigestJob> jobs;
  jobs.reserve(inputs.size());
  for (const ByteSpan& input : inputs) jobs.push_back({{&input, 1}});
  run_digest_jobs(jobs, threads);
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].digest != wanted[i].digest) return mismatch(wanted[i], jobs[i].digest, name_);
  }
  return Status::ok();
}

Status Snapshot::verify_tensor(const StoredTensor& tensor, int threads) const {
  const StoredTensor* one = &tensor;
  return verify({&one, 1}, threads);
}

Status Snapshot::verify_contents(int threads) const {
  std::vector<const StoredTensor*> tensors;
  for (const StoredSection& section : sections_) {
    for (const StoredTensor& tensor : section.tensors) tensors.push_back(&tensor);
  }
  return verify(tensors, threads);
}

}  // namespace driftwood::snapshot
