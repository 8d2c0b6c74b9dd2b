// PieceIndex: which pieces the packs of a store hold, by digest, in memory.
//
// About 120 bytes a piece. A piece may lie in several places; the one added last is found. One thread at a
// time.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "snapshot/digest.h"
#include "snapshot/pack_file.h"

namespace driftwood::snapshot {

struct PiecePlace {
  uint32_t pack = 0;  // PieceIndex::pack_name()
  uint64_t offset = 0;
  bool operator==(const PiecePlace&) const = default;
};

// In the order of their offsets.
struct PackedPiece {
  Digest digest{};
  uint64_t length = 0;
  uint64_t offset = 0;
};

// The first bytes of a digest are as good a hash as any.
struct DigestHash {
  size_t operator()(const Digest& digest) const {
    size_t hash = 0;
    std::memcpy(&hash, digest.data(), sizeof hash);
    return hash;
  }
};

class PieceIndex {
 public:
  // Whether the pack is in, with this stamp.
  bool has_pack(const Digest& name) const { return numbers_.contains(name); }
  bool has_pack(const Digest& name, const os::FileStamp& stamp) const;
  void add_pack(const Digest& name, const os::FileStamp& stamp, std::vector<PackedPiece> pieces);
  void add_pack(const PackFile& pack);
  // Forgets every pack that is not in `names`.
  void keep_packs(const std::vector<Digest>& names);
  const Digest& pack_name(uint32_t pack) const { return packs_[pack].name; }

  // A place of the piece: `wanted` if it is one.
  std::optional<PiecePlace> find(const Digest& digest, uint64_t length, const PiecePlace& wanted) const;

 private:
  struct Entry {
    PiecePlace place;
    uint64_t length = 0;
  };
  struct Pack {
    Digest name{};
    os::FileStamp stamp;
    std::vector<PackedPiece> pieces;
  };
  void add_entries(uint32_t number);

  std::vector<Pack> packs_;  // by number; a forgotten one is empty, numbers are not used again
  std::map<Digest, uint32_t> numbers_;
  std::unordered_map<Digest, Entry, DigestHash> entries_;
};

}  // namespace driftwood::snapshot
