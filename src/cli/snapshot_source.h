// A snapshot as it is named on the command line: WHICH, in the store, or a file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/store_flags.h"
#include "snapshot/reader.h"
#include "snapshot/store.h"

namespace driftwood::cli {

// Is it a file? What holds a '/' is one, and a file that `store` (may be null) does not know by that name.
bool names_a_file(const std::string& which, snapshot::Store* store);

// What an import asks of a file before it is copied in: that it holds an actor that can go on.
snapshot::Store::AcceptFile accept_actor(const std::string& path);

// Read-only: of the store, or of a file, which is checked in full. Immutable, thread-safe.
class SnapshotView {
 public:
  static Result<std::unique_ptr<SnapshotView>> open(const StoreFlags& flags, const std::string& which);

  const std::string& which() const { return which_; }
  std::string hash() const { return stored_ != nullptr ? stored_->hash() : file_->hash(); }
  const snapshot::Identity& identity() const {
    return stored_ != nullptr ? stored_->identity() : file_->identity();
  }
  const snapshot::Origin& origin() const { return stored_ != nullptr ? stored_->origin() : file_->origin(); }
  const std::vector<snapshot::StoredSection>& sections() const {
    return stored_ != nullptr ? stored_->sections() : file_->sections();
  }
  const snapshot::StoredSection* find(std::string_view section) const {
    return stored_ != nullptr ? stored_->find(section) : file_->find(section);
  }
  // Bytes [offset, offset + out.size()) of a tensor of sections().
  Status read(const snapshot::StoredTensor& tensor, uint64_t offset, std::span<uint8_t> out) const;
  // Of a tensor with piece_bytes, one a piece.
  std::vector<snapshot::Digest> digests(const snapshot::StoredTensor& tensor) const;

  // Null for a file.
  snapshot::Store* store() const { return store_.get(); }

 private:
  SnapshotView() = default;
  std::string which_;
  std::unique_ptr<snapshot::Store> store_;
  std::shared_ptr<const snapshot::StoredSnapshot> stored_;
  std::unique_ptr<const snapshot::Snapshot> file_;
};

// What the module was called where it came from.
std::string module_name(const snapshot::StoredSnapshot& stored);

// Bytes of a tensor, without padding.
uint64_t bytes_of(const snapshot::StoredTensor& tensor);

}  // namespace driftwood::cli
