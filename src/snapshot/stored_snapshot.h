// The StoredSnapshot of this store: a manifest and the packs that it names, held open.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "snapshot/manifest.h"
#include "snapshot/pack_file.h"
#include "snapshot/store.h"

namespace driftwood::snapshot {

class PackedSnapshot final : public StoredSnapshot {
 public:
  // `packs`: those of the manifest, in its order. Checks that every run lies where pieces of the right length
  // are; reads none.
  static Result<std::shared_ptr<const PackedSnapshot>> create(std::shared_ptr<const Manifest> manifest,
                                                              std::vector<std::shared_ptr<PackFile>> packs);

  const std::string& hash() const override { return manifest_->hash(); }
  const Identity& identity() const override { return manifest_->identity(); }
  const Origin& origin() const override { return manifest_->origin(); }
  const std::vector<StoredSection>& sections() const override { return manifest_->sections(); }
  const StoredSection* find(std::string_view section) const override;
  std::span<const region::FileImage> pieces(const StoredTensor& tensor) const override;
  std::span<const Digest> digests(const StoredTensor& tensor) const override;
  Status read(const StoredTensor& tensor, uint64_t offset, std::span<uint8_t> out) const override;

  const Manifest& manifest() const { return *manifest_; }

  const std::vector<std::shared_ptr<PackFile>>& packs() const { return packs_; }

  // Of pieces in trusted packs: the digests that the manifest has against those of the pack. Reads no piece.
  Status check_trusted_pieces() const;
  // Of all others, zeros included: every byte.
  Status verify_other_pieces(int threads) const;
  // Every tensor's bytes, in the mappings, for write_container(). `zeros`: at least a unit of them.
  SnapshotContents contents(ByteSpan zeros) const;

 private:
  struct Image {
    std::vector<region::FileImage> parts;
    std::vector<uint64_t> begins;  // of the parts, in the tensor
  };
  explicit PackedSnapshot(std::shared_ptr<const Manifest> manifest) : manifest_(std::move(manifest)) {}
  size_t index_of(const StoredTensor& tensor) const;
  Status place_run(const Manifest::Placed& tensor, const PieceRun& run, uint64_t first, Image* image) const;
  // Calls visit(piece number, position or nothing for zeros) for every piece.
  template <typename Visit>
  Status visit_pieces(const Manifest::Placed& tensor, Visit visit) const;

  std::shared_ptr<const Manifest> manifest_;
  std::vector<std::shared_ptr<PackFile>> packs_;
  std::vector<Image> images_;  // of the manifest's placed tensors
};

}  // namespace driftwood::snapshot
