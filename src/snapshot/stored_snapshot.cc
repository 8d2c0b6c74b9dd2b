#include "snapshot/stored_snapshot.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "os/folder.h"
#include "os/os_error.h"
#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

uint64_t piece_length(const Manifest::Placed& tensor, uint64_t piece) {
  const uint64_t size = tensor.tensor->piece_bytes;
  return std::min(size, tensor.bytes - piece * size);
}

uint64_t whole_pages(uint64_t bytes) {
  const uint64_t page = region::os_page_bytes();
  return (bytes + page - 1) / page * page;
}

std::string piece_place(const std::string& path, const Manifest::Placed& tensor, uint64_t piece) {
  return path + ": tensor '" + tensor.tensor->full_name + "', piece " + std::to_string(piece);
}

}  // namespace

Result<std::shared_ptr<const PackedSnapshot>> PackedSnapshot::create(
    std::shared_ptr<const Manifest> manifest, std::vector<std::shared_ptr<PackFile>> packs) {
  std::shared_ptr<PackedSnapshot> snapshot(new PackedSnapshot(std::move(manifest)));
  snapshot->packs_ = std::move(packs);
  for (const Manifest::Placed& tensor : snapshot->manifest_->placed()) {
    Image image;
    uint64_t piece = 0;
    for (const PieceRun& run : tensor.runs) {
      DW_RETURN_IF_ERROR(snapshot->place_run(tensor, run, piece, &image));
      piece += run.pieces;
    }
    snapshot->images_.push_back(std::move(image));
  }
  return std::shared_ptr<const PackedSnapshot>(std::move(snapshot));
}

Status PackedSnapshot::place_run(const Manifest::Placed& tensor, const PieceRun& run, uint64_t first,
                                 Image* image) const {
  std::vector<region::FileImage>& parts = image->parts;
  const uint64_t begin = first * tensor.tensor->piece_bytes;
  const uint64_t end = std::min(tensor.bytes, (first + run.pieces) * tensor.tensor->piece_bytes);
  if (run.pack == kZeroPack) {
    if (!parts.empty() && parts.back().fd < 0) {
      parts.back().length += whole_pages(end - begin);
    } else {
      parts.push_back({-1, 0, whole_pages(end - begin)});
      image->begins.push_back(begin);
    }
    return Status::ok();
  }
  const PackFile& pack = *packs_[run.pack];
  const std::optional<PackFile::Position> at = pack.find(run.offset);
  const uint64_t length = piece_length(tensor, first);
  if (!at.has_value() || run.pieces > at->in->count - at->index || at->in->length != length ||
      piece_length(tensor, first + run.pieces - 1) != length) {
    return invalid_argument(piece_place(manifest_->path(), tensor, first) + " and " +
                            std::to_string(run.pieces - 1) + " more are not at byte " +
                            std::to_string(run.offset) + " of " + pack.path());
  }
  // Padded pieces are no neighbours for whoever maps them.
  const uint64_t together = at->in->stride == length ? run.pieces : 1;
  for (uint64_t i = 0; i < run.pieces; i += together) {
    const region::FileImage part{pack.descriptor(), run.offset + i * at->in->stride,
                                 whole_pages(together * length)};
    if (!parts.empty() && parts.back().fd == part.fd &&
        parts.back().offset + parts.back().length == part.offset) {
      parts.back().length += part.length;
    } else {
      parts.push_back(part);
      image->begins.push_back(begin + i * length);
    }
  }
  return Status::ok();
}

const StoredSection* PackedSnapshot::find(std::string_view section) const {
  const auto found = std::find_if(sections().begin(), sections().end(),
                                  [&](const StoredSection& s) { return s.name == section; });
  return found == sections().end() ? nullptr : &*found;
}

size_t PackedSnapshot::index_of(const StoredTensor& tensor) const {
  const auto& placed = manifest_->placed();
  for (size_t i = 0; i < placed.size(); ++i) {
    if (placed[i].tensor == &tensor || placed[i].tensor->full_name == tensor.full_name) return i;
  }
  DW_CHECK(false, "not a tensor with pieces of this snapshot");
  return 0;
}

std::span<const region::FileImage> PackedSnapshot::pieces(const StoredTensor& tensor) const {
  return images_[index_of(tensor)].parts;
}

std::span<const Digest> PackedSnapshot::digests(const StoredTensor& tensor) const {
  return manifest_->placed()[index_of(tensor)].digests;
}

Status PackedSnapshot::read(const StoredTensor& tensor, uint64_t offset, std::span<uint8_t> out) const {
  const size_t index = index_of(tensor);
  const Image& image = images_[index];
  const uint64_t bytes = manifest_->placed()[index].bytes;
  if (offset > bytes || out.size() > bytes - offset) {
    return out_of_range(manifest_->path() + ": tensor '" + tensor.full_name + "': has " +
                        std::to_string(bytes) + " bytes, not " + std::to_string(out.size()) + " from " +
                        std::to_string(offset));
  }
  size_t part = static_cast<size_t>(std::upper_bound(image.begins.begin(), image.begins.end(), offset) -
                                    image.begins.begin());
  for (part -= part == 0 ? 0 : 1; !out.empty(); ++part) {
    const region::FileImage& in = image.parts[part];
    const uint64_t skip = offset - image.begins[part];
    const uint64_t end = part + 1 < image.begins.size() ? image.begins[part + 1] : bytes;
    const size_t size = std::min<uint64_t>(out.size(), end - offset);
    if (in.fd < 0) std::memset(out.data(), 0, size);
    for (size_t done = 0; in.fd >= 0 && done < size;) {
      size_t got = 0;
      const int error =
          os::read_some_at(in.fd, out.subspan(done, size - done), in.offset + skip + done, &got);
      if (error != 0) return os::errno_status(error, manifest_->path() + ": reading its pieces");
      if (got == 0) return data_loss(manifest_->path() + ": a pack ends before its pieces (was it cut?)");
      done += got;
    }
    out = out.subspan(size);
    offset += size;
  }
  return Status::ok();
}

template <typename Visit>
Status PackedSnapshot::visit_pieces(const Manifest::Placed& tensor, Visit visit) const {
  uint64_t piece = 0;
  for (const PieceRun& run : tensor.runs) {
    for (uint64_t i = 0; i < run.pieces; ++i, ++piece) {
      if (run.pack == kZeroPack) {
        DW_RETURN_IF_ERROR(visit(piece, static_cast<const PackFile*>(nullptr), PackFile::Position{}));
        continue;
      }
      PackFile::Position at = *packs_[run.pack]->find(run.offset);
      at.index += i;
      DW_RETURN_IF_ERROR(visit(piece, static_cast<const PackFile*>(packs_[run.pack].get()), at));
    }
  }
  return Status::ok();
}

Status PackedSnapshot::check_trusted_pieces() const {
  for (const Manifest::Placed& tensor : manifest_->placed()) {
    DW_RETURN_IF_ERROR(visit_pieces(
        tensor, [&](uint64_t piece, const PackFile* pack, const PackFile::Position& at) -> Status {
          if (pack == nullptr || !pack->trusted()) return Status::ok();
          if (at.in->digests[at.index] == tensor.digests[piece]) return Status::ok();
          return data_loss(piece_place(manifest_->path(), tensor, piece) + ": its digest is not the one in " +
                           pack->path());
        }));
  }
  return Status::ok();
}

Status PackedSnapshot::verify_other_pieces(int threads) const {
  ContentsCheck check;
  std::set<std::pair<const uint8_t*, Digest>> seen;  // shared pieces are hashed once
  std::map<uint64_t, Digest> zeros;                  // by length
  for (const Manifest::Placed& tensor : manifest_->placed()) {
    DW_RETURN_IF_ERROR(visit_pieces(
        tensor, [&](uint64_t piece, const PackFile* pack, const PackFile::Position& at) -> Status {
          const Digest& digest = tensor.digests[piece];
          const auto fault = [this, &tensor, piece](const std::string& in, const Digest& found) {
            return data_loss(piece_place(manifest_->path(), tensor, piece) + ": damaged in " + in +
                             ": its BLAKE3 is " + to_hex(found) + ", it should be " +
                             to_hex(tensor.digests[piece]));
          };
          if (pack == nullptr) {
            const uint64_t length = piece_length(tensor, piece);
            const auto [zero, added] = zeros.emplace(length, Digest{});
            if (added) zero->second = blake3_of_zeros(length);
            return zero->second == digest ? Status::ok() : fault(manifest_->path(), zero->second);
          }
          if (pack->trusted() || !seen.insert({pack->piece(at).data(), digest}).second) return Status::ok();
          check.expect_zeros(pack->padding(at), [this, &tensor, piece, pack](uint64_t) {
            return data_loss(piece_place(manifest_->path(), tensor, piece) + ": damaged in " + pack->path() +
                             ": its padding is not zero");
          });
          check.expect_digest(pack->piece(at), digest,
                              [fault, pack](const Digest& found) { return fault(pack->path(), found); });
          return Status::ok();
        }));
  }
  return check.run(threads);
}

SnapshotContents PackedSnapshot::contents(ByteSpan zeros) const {
  SnapshotContents contents = manifest_->contents();
  auto placed = manifest_->placed().begin();
  for (Section& section : contents.sections) {
    for (SectionTensor& tensor : section.tensors) {
      if (tensor.piece_bytes == 0) continue;
      const Status visited = visit_pieces(
          *placed, [&](uint64_t piece, const PackFile* pack, const PackFile::Position& at) -> Status {
            if (pack != nullptr) {
              tensor.chunks.push_back(pack->piece(at));
              return Status::ok();
            }
            uint64_t left = piece_length(*placed, piece);
            for (; left > 0; left -= tensor.chunks.back().size()) {
              tensor.chunks.push_back(zeros.first(std::min<uint64_t>(left, zeros.size())));
            }
            return Status::ok();
          });
      DW_CHECK(visited.is_ok(), "nothing here fails");
      ++placed;
    }
  }
  return contents;
}

}  // namespace driftwood::snapshot
