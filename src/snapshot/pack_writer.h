// PackWriter: writes one pack, piece by piece (pack_file.h tells the layout).
//
// The header comes last, into room that was left for it. The file is made when the first piece comes. Pieces
// are borrowed until the next flush of the gathered ones: until end_class(). One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/atomic_file.h"
#include "snapshot/header.h"
#include "snapshot/piece_index.h"

namespace driftwood::snapshot {

class PackWriter {
 public:
  // `folder`: of packs. `max_classes`: lengths that may come.
  PackWriter(std::string folder, size_t max_classes);

  // Pieces of one length; classes come one after the other.
  void begin_class(uint64_t length);
  // The place of the piece in the file.
  Result<uint64_t> add(ByteSpan piece, const Digest& digest);
  uint64_t count() const { return digests_.size(); }  // of this class
  // Forgets all pieces of this class but the first `count`; others come in their place.
  void rewind(uint64_t count);
  Status end_class();

  bool empty() const { return pieces_.empty(); }
  uint64_t bytes() const { return end_; }
  const std::vector<PackedPiece>& pieces() const { return pieces_; }

  // Header and size; the name that the file must get. Precondition: not empty.
  Result<Digest> finish();
  Status flush() { return file_->flush(); }
  void start_write_back() { file_->start_write_back(0, 0); }
  Result<os::FileStamp> commit(const std::string& path) { return file_->commit_as(path); }
  // The same after flush(); the caller flushes the folder.
  Result<os::FileStamp> place(const std::string& path) {
    return file_->commit_as(path, os::AtomicFile::Durability::kUnflushed);
  }

 private:
  Status write_gathered();
  Status append_table(const std::vector<Digest>& digests);
  Status open();

  std::string folder_;
  uint64_t header_bytes_;
  std::optional<os::AtomicFile> file_;
  uint64_t end_ = 0;           // of finished classes
  uint64_t written_back_ = 0;  // up to here the system was asked to write
  uint64_t length_ = 0, stride_ = 0;
  std::vector<Digest> digests_;  // of this class: of the true bytes
  std::vector<Digest> padded_;   // and of the padded ones, where they differ
  ByteSpan gathered_;            // neighbours in memory and in the file, to be written at once
  uint64_t gathered_at_ = 0;
  std::vector<PackedPiece> pieces_;
  Header header_;
};

}  // namespace driftwood::snapshot
