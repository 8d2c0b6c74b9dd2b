// Snapshot: a snapshot file opened for reading: docs/formats/snapshot.md.
//
// open() maps the file read-only and checks structure and header: format number, header hash, every name,
// shape and offset, directory against safetensors table, size of the file. That costs the same whatever the
// size of the tensors, none of whose bytes are touched. verify_contents() checks every byte: hashes, piece
// hashes, padding. Until it did, contents are as trustworthy as the file's origin.
//
// Spans point into the mapping and live as long as the Snapshot. Whoever wants tensors of their own, copy on
// write, maps `extent_bytes` bytes at `file_offset` of file() (both multiples of 64 KiB), having compared the
// file's stamp. Only files that nobody changes may be opened for long: truncating one ends the process.
//
// Thread-safe. Errors as in snapshot/header.h; data_loss names the tensor and the piece.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "os/mapped_file.h"
#include "snapshot/contents_check.h"
#include "snapshot/header.h"

namespace driftwood::snapshot {

struct StoredTensor : DirectoryTensor {
  std::string full_name;      // "SECTION.TENSOR"
  ByteSpan bytes;             // without padding
  uint64_t file_offset = 0;   // a multiple of 64 KiB
  uint64_t extent_bytes = 0;  // with padding, a multiple of 64 KiB
  ByteSpan piece_hashes;      // 32 bytes a piece; empty without piece_bytes
  uint64_t piece_hashes_offset = 0;
};

struct StoredSection : SectionDescription {
  std::vector<StoredTensor> tensors;
  // Null if there is none.
  const StoredTensor* find(std::string_view tensor) const;
};

class Snapshot {
 public:
  static Result<std::unique_ptr<const Snapshot>> open(const std::string& path);
  // Borrows the bytes. `name` stands for them in messages.
  static Result<std::unique_ptr<const Snapshot>> parse(ByteSpan bytes, const std::string& name);

  const Identity& identity() const { return identity_; }
  const Origin& origin() const { return origin_; }
  // The header's hash in hex: names the snapshot, contents included.
  std::string hash() const { return to_hex(hash_); }
  const std::vector<StoredSection>& sections() const { return sections_; }
  const StoredSection* find(std::string_view section) const;
  uint64_t file_bytes() const { return bytes_.size(); }
  // Null after parse().
  const os::MappedFile* file() const { return file_.get(); }

  // failed_precondition naming every field that differs, with both values, except those in `exempt`.
  Status check_identity(const Identity& expected, std::span<const std::string_view> exempt = {}) const;

  // Every byte, on at most `threads` threads.
  Status verify_contents(int threads = 1) const;
  // The same, as part of a check that outlives neither this nor the bytes.
  void expect_contents(ContentsCheck* check) const;
  // One tensor of sections().
  Status verify_tensor(const StoredTensor& tensor, int threads = 1) const;

 private:
  Snapshot(std::string name, ByteSpan bytes) : name_(std::move(name)), bytes_(bytes) {}
  static Result<std::unique_ptr<Snapshot>> read(ByteSpan bytes, const std::string& name);
  void place_sections(const DecodedHeader& decoded);
  void expect_tensor(const StoredTensor& tensor, ContentsCheck* check) const;
  void expect_pieces(const StoredTensor& tensor, ContentsCheck* check) const;

  std::shared_ptr<const os::MappedFile> file_;
  std::string name_;
  ByteSpan bytes_;
  Identity identity_;
  Origin origin_;
  Digest hash_{};
  std::vector<StoredSection> sections_;
};

}  // namespace driftwood::snapshot
