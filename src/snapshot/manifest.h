// Manifest: one snapshot of a store, as a file (docs/formats/store.md).
//
// A snapshot container with the identity, origin and sections of the portable file, in which every tensor
// with piece_bytes is replaced by the digests of its pieces, U8 [pieces, 32] (so that its own digest is the
// portable header's), and one more section, ".store", at the end:
//     attributes   "store": format number; "snapshot": the portable file's hash;
//                  "SECTION.TENSOR": "DTYPE PIECE_BYTES SHAPE LAYOUT" of every replaced tensor
//     packs        U8 [packs, 32]: names of the packs
//     runs         U64 [runs, 3]: pieces, pack (kZeroPack: zeros), file offset; of all replaced tensors in
//     order
// A run is of pieces that are neighbours in one class of one pack; it ends where its tensor does.
//
// parse() checks all that can be checked without the packs. Thread-safe once read.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/mapped_file.h"
#include "snapshot/contents.h"
#include "snapshot/header.h"
#include "snapshot/reader.h"

namespace driftwood::snapshot {

inline constexpr std::string_view kStoreFormat = "0";
inline constexpr char kStoreSection[] = ".store";  // no section of a snapshot may begin so
inline constexpr uint64_t kZeroPack = ~uint64_t{0};

struct PieceRun {
  uint64_t pieces = 0;
  uint64_t pack = kZeroPack;  // into the manifest's packs
  uint64_t offset = 0;        // in the pack's file
};

class Manifest {
 public:
  // `hash`: of the snapshot that the file must be.
  static Result<std::shared_ptr<const Manifest>> open(const std::string& path, const std::string& hash);
  // Borrows the bytes. An empty `hash` takes the manifest's.
  static Result<std::shared_ptr<const Manifest>> parse(ByteSpan bytes, const std::string& path,
                                                       const std::string& hash);

  const std::string& path() const { return path_; }
  const std::string& hash() const { return hash_; }
  const Identity& identity() const { return container_->identity(); }
  const Origin& origin() const { return container_->origin(); }
  const std::vector<StoredSection>& sections() const { return sections_; }  // the snapshot's
  std::span<const Digest> packs() const { return packs_; }
  const os::FileStamp& stamp() const { return file_->stamp(); }
  uint64_t file_bytes() const { return container_->file_bytes(); }
  uint64_t bytes_total() const;  // of the snapshot's tensors

  // The tensors with piece_bytes, in order.
  struct Placed {
    const StoredTensor* tensor = nullptr;  // of sections()
    uint64_t bytes = 0;
    std::span<const Digest> digests;
    std::span<const PieceRun> runs;
  };
  const std::vector<Placed>& placed() const { return placed_; }

  // Every byte of the file, and that it is the snapshot with hash().
  Status verify(int threads) const;
  // The same in two steps, the first as part of a check that this outlives.
  void expect_contents(ContentsCheck* check) const { container_->expect_contents(check); }
  Status check_hash() const;
  // The portable file's.
  Header portable_header() const;
  // For writing it again: tensors with piece_bytes have no chunks. Borrows from this.
  SnapshotContents contents() const;
  std::vector<TensorDigests> digests() const;

 private:
  explicit Manifest(std::string path) : path_(std::move(path)) {}
  Status read(ByteSpan bytes, const std::string& hash);
  Status read_store_section(const StoredSection& store);
  Status restore_tensor(const std::string& description, StoredTensor* tensor) const;
  Status restore_sections(const StoredSection& store);
  Status assign_runs();

  std::string path_;
  std::string hash_;
  std::shared_ptr<const os::MappedFile> file_;
  std::unique_ptr<const Snapshot> container_;
  std::vector<StoredSection> sections_;
  std::span<const Digest> packs_;
  std::span<const PieceRun> runs_;
  std::vector<Placed> placed_;
};

// What a manifest says beyond the contents.
struct ManifestPlaces {
  std::string hash;
  std::vector<Digest> packs;
  std::vector<PieceRun> runs;  // of all tensors with piece_bytes, in order
};

// Chunks of tensors with piece_bytes are not looked at. Returns the bytes written.
Result<uint64_t> write_manifest(os::AtomicFile* file, const std::string& path,
                                const SnapshotContents& contents, const std::vector<TensorDigests>& digests,
                                const ManifestPlaces& places);

// invalid_argument for section names that a store keeps for itself.
Status check_storable(const SnapshotContents& contents, const std::string& place);

}  // namespace driftwood::snapshot
