// Store: a folder of snapshots that share what is equal (docs/formats/store.md).
//
//     DIR/packs/      immutable files of blobs: memory pages and KV blocks, each kept once
//     DIR/snapshots/  one small manifest a snapshot: everything else of it, and where its blobs lie
//     DIR/names/      one file a name, holding a snapshot's hash
// All are snapshot containers (container.h) but the names. A snapshot is named by the hash that its portable
// file has, whatever place its bytes have in the store: export and import keep it.
//
// What is stored where: a tensor with piece_bytes is cut into pieces, a piece that is all zero takes no room,
// a piece that is in the store already is not written again, the rest goes into one new pack. All other
// tensors lie in the manifest.
//
// Trust: pack and manifest are taken at their word as long as device, inode, size, mtime and ctime are what
// the store recorded when it wrote them; otherwise load() checks every byte it hands out. Structure and
// header are checked always.
//
// Crash safety: every file appears whole and durable under its name or not at all, packs before the manifest
// that needs them, the name last. What a crash leaves is garbage that gc() removes.
//
// Threads: a Store may be used by several threads, a folder by several processes: saves and loads exclude
// gc(), not each other. Errors: the system's, naming the file; not_found for names and hashes; data_loss
// naming file, tensor and piece; failed_precondition for a store or container of another format number;
// permission_denied for writing to a read-only store.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "region/region.h"
#include "snapshot/digest.h"
#include "snapshot/identity.h"
#include "snapshot/reader.h"
#include "snapshot/section.h"
#include "snapshot/writer.h"

namespace driftwood::snapshot {

// What is_name() asks, for messages.
inline constexpr char kNameRule[] =
    "1 to 200 of a-z A-Z 0-9 _ . -, no dot or dash in front, not 64 hex digits";

struct StoreOptions {
  bool create = false;     // make the folder if it is missing
  bool read_only = false;  // nothing is written, not even a lock
  int threads = 1;         // for hashing
};

struct SaveReport {
  std::string hash;            // names the snapshot
  uint64_t bytes_total = 0;    // of all tensors
  uint64_t bytes_written = 0;  // to disk, by this save
  uint64_t pieces_total = 0, pieces_written = 0, pieces_zero = 0;
  // Of every tensor with piece_bytes, by full name: one digest a piece. Give them back as `known` of the same
  // bytes.
  std::map<std::string, std::vector<Digest>> digests;
};

enum class Verify : uint8_t { kIfTouched, kFull };

// A snapshot in the store, its files held open: what pieces() tells stays readable and mappable while it
// lives, even if gc() removes the files meanwhile. Immutable, thread-safe.
class StoredSnapshot {
 public:
  virtual ~StoredSnapshot() = default;
  virtual const std::string& hash() const = 0;
  virtual const Identity& identity() const = 0;
  virtual const Origin& origin() const = 0;
  // In the order they were saved in. A tensor with piece_bytes has no `bytes` here: see pieces(). Others' lie
  // in a mapping that lives as long as this.
  virtual const std::vector<StoredSection>& sections() const = 0;
  virtual const StoredSection* find(std::string_view section) const = 0;
  // Of a tensor of sections() with piece_bytes: where its pieces lie, in order, neighbours joined: the sum of
  // the lengths is the tensor's bytes rounded up to whole OS pages. fd -1: zeros. Offsets are multiples of
  // 64 KiB; a short last piece is followed by zeros up to the unit.
  virtual std::span<const region::FileImage> pieces(const StoredTensor& tensor) const = 0;
  virtual std::span<const Digest> digests(const StoredTensor& tensor) const = 0;
  // Copies bytes [offset, offset + out.size()) of such a tensor.
  virtual Status read(const StoredTensor& tensor, uint64_t offset, std::span<uint8_t> out) const = 0;
};

struct StoreEntry {
  std::string hash;
  std::vector<std::string> names;
  std::string parent;
  uint64_t created_ns = 0;
  uint64_t bytes_total = 0;
  Status status;  // data_loss and the like: the manifest, or (hash empty) the name, can't be read
};

struct GcReport {
  uint64_t snapshots_removed = 0, packs_removed = 0, packs_rewritten = 0, bytes_freed = 0;
  std::vector<std::string> kept_for;  // damaged manifests: nothing that they might need was removed
};

struct GcOptions {
  bool dry_run = false;
};

class Store {
 public:
  static Result<std::unique_ptr<Store>> open(const std::string& path, const StoreOptions& options);
  virtual ~Store() = default;
  virtual const std::string& path() const = 0;

  // Durable when it returns. `name` may be empty; an existing name moves to the new snapshot. Saving what is
  // there already writes nothing but the name. Bytes whose digest is `known` (SectionTensor) and in the store
  // are not read.
  virtual Result<SaveReport> save(const SnapshotContents& contents, const std::string& name) = 0;
  // `which`: a name, a hash, or the first 8 or more digits of one (invalid_argument if several begin so).
  virtual Result<std::shared_ptr<const StoredSnapshot>> load(std::string_view which,
                                                             Verify verify = Verify::kIfTouched) = 0;
  virtual Result<std::string> resolve(std::string_view which) = 0;
  // The hash that a name stands for; no prefix counts.
  virtual Result<std::string> named(const std::string& name) = 0;

  virtual Result<std::vector<StoreEntry>> list() = 0;  // oldest first
  // Names are as kNameRule says.
  static bool is_name(std::string_view name);
  virtual Status set_name(const std::string& name, const std::string& hash) = 0;
  virtual Status remove_name(const std::string& name) = 0;

  // Every byte of one snapshot, or of the whole store for an empty `which`: the status tells all that is
  // damaged.
  virtual Status verify(std::string_view which) = 0;
  // Removes snapshots without a name, blobs that no snapshot needs, and what crashes left. A pack that is
  // mostly dead is rewritten.
  virtual Result<GcReport> gc(const GcOptions& options) = 0;

  // One portable file, equal to what write_snapshot() makes of the same contents.
  virtual Result<WrittenSnapshot> export_file(std::string_view which, const std::string& path) = 0;
  // Checked in full, then copied in. Nothing is left behind on an error. `accept`, if there is one, is asked
  // about the whole file, every byte of it checked, before anything is written.
  using AcceptFile = std::function<Status(const Snapshot& file)>;
  virtual Result<SaveReport> import_file(const std::string& path, const std::string& name,
                                         const AcceptFile& accept) = 0;
  Result<SaveReport> import_file(const std::string& path, const std::string& name) {
    return import_file(path, name, nullptr);
  }
};

}  // namespace driftwood::snapshot
