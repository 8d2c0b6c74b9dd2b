// PackFile: an immutable file of pieces in the store, open for reading (docs/formats/store.md).
//
// A snapshot container with one section, "pack", that holds for every length of pieces a tensor
// "piecesLENGTH", U8 [count, LENGTH padded to a unit], hashed in pieces. Where LENGTH is no whole number of
// units, "digestsLENGTH", U8 [count, 32], follows: the digests of the true bytes, which the padded pieces'
// are not.
//
// open() checks structure and header, as Snapshot::open() does, and that the file is the one its name tells.
// Contents are taken at their word if the file's stamp is the recorded one (`trusted`), or after a check.
//
// Threads: immutable but for `trusted`, thread-safe. The file stays open and mapped while this lives.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/mapped_file.h"
#include "snapshot/reader.h"

namespace driftwood::snapshot {

inline constexpr char kPackSection[] = "pack";
inline constexpr char kPackKind[] = "pack";
inline constexpr char kPackPieces[] = "pieces";    // and the length
inline constexpr char kPackDigests[] = "digests";  // and the length

// Pieces of one length: piece i lies at file offset begin + i * stride.
struct PieceClass {
  uint64_t length = 0;
  uint64_t stride = 0;
  uint64_t begin = 0;
  uint64_t count = 0;
  const Digest* digests = nullptr;  // of the true bytes
  const StoredTensor* tensor = nullptr;
};

class PackFile {
 public:
  // `name`: the hash that the file must have.
  static Result<std::shared_ptr<PackFile>> open(const std::string& path, const Digest& name);
  // Borrows the bytes; for tests and fuzzers.
  static Result<std::shared_ptr<PackFile>> parse(ByteSpan bytes, const std::string& path, const Digest& name);

  const std::string& path() const { return path_; }
  const Digest& name() const { return name_; }
  int descriptor() const { return file_->descriptor(); }
  const os::FileStamp& stamp() const { return file_->stamp(); }
  uint64_t file_bytes() const { return container_->file_bytes(); }
  const std::vector<PieceClass>& classes() const { return classes_; }

  // The class that has a piece at this file offset, and which it is there.
  struct Position {
    const PieceClass* in = nullptr;
    uint64_t index = 0;
  };
  std::optional<Position> find(uint64_t offset) const;

  // True bytes of a piece, in the mapping.
  ByteSpan piece(const Position& at) const {
    return bytes_.subspan(at.in->begin + at.index * at.in->stride, at.in->length);
  }
  ByteSpan padding(const Position& at) const {
    return bytes_.subspan(at.in->begin + at.index * at.in->stride + at.in->length,
                          at.in->stride - at.in->length);
  }

  bool trusted() const { return trusted_.load(std::memory_order_acquire); }
  void set_trusted(bool trusted) const { trusted_.store(trusted, std::memory_order_release); }
  // Every byte, as part of a check that this outlives.
  void expect_contents(ContentsCheck* check) const;

 private:
  PackFile(std::string path, const Digest& name) : path_(std::move(path)), name_(name) {}
  Status read(ByteSpan bytes);
  Status add_class(const StoredTensor& tensor, const StoredTensor* next, size_t* used);

  std::string path_;
  Digest name_;
  std::shared_ptr<const os::MappedFile> file_;
  ByteSpan bytes_;
  std::unique_ptr<const Snapshot> container_;
  std::vector<PieceClass> classes_;  // by `begin`
  mutable std::atomic<bool> trusted_{false};
};

}  // namespace driftwood::snapshot
