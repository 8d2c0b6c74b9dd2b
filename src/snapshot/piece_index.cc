#include "snapshot/piece_index.h"

#include <algorithm>

#include "snapshot/store_folder.h"

namespace driftwood::snapshot {

bool PieceIndex::has_pack(const Digest& name, const os::FileStamp& stamp) const {
  const auto found = numbers_.find(name);
  return found != numbers_.end() && same_stamp(packs_[found->second].stamp, stamp);
}

void PieceIndex::add_entries(uint32_t number) {
  for (const PackedPiece& piece : packs_[number].pieces) {
    entries_[piece.digest] = {{number, piece.offset}, piece.length};
  }
}

void PieceIndex::add_pack(const Digest& name, const os::FileStamp& stamp, std::vector<PackedPiece> pieces) {
  const auto [entry, added] = numbers_.emplace(name, static_cast<uint32_t>(packs_.size()));
  if (!added) {
    packs_[entry->second].stamp = stamp;  // the same pack written again
    return;
  }
  packs_.push_back({name, stamp, std::move(pieces)});
  add_entries(entry->second);
}

void PieceIndex::add_pack(const PackFile& pack) {
  std::vector<PackedPiece> pieces;
  for (const PieceClass& in : pack.classes()) {
    for (uint64_t i = 0; i < in.count; ++i) {
      pieces.push_back({in.digests[i], in.length, in.begin + i * in.stride});
    }
  }
  add_pack(pack.name(), pack.stamp(), std::move(pieces));
}

void PieceIndex::keep_packs(const std::vector<Digest>& names) {
  std::map<Digest, uint32_t> kept;
  for (const Digest& name : names) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) kept.insert(*found);
  }
  if (kept.size() == numbers_.size()) return;
  for (const auto& [name, number] : numbers_) {
    if (!kept.contains(name)) packs_[number].pieces = {};
  }
  numbers_ = std::move(kept);
  entries_.clear();
  for (uint32_t number = 0; number < packs_.size(); ++number) add_entries(number);
}

std::optional<PiecePlace> PieceIndex::find(const Digest& digest, uint64_t length,
                                           const PiecePlace& wanted) const {
  const auto found = entries_.find(digest);
  if (found == entries_.end() || found->second.length != length) return std::nullopt;
  if (wanted.pack < packs_.size()) {
    const std::vector<PackedPiece>& pieces = packs_[wanted.pack].pieces;
    const auto at = std::lower_bound(pieces.begin(), pieces.end(), wanted.offset,
                                     [](const PackedPiece& p, uint64_t offset) { return p.offset < offset; });
    if (at != pieces.end() && at->offset == wanted.offset && at->digest == digest && at->length == length) {
      return wanted;
    }
  }
  return found->second.place;
}

}  // namespace driftwood::snapshot
