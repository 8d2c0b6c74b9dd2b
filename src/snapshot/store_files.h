// FolderStore: the Store on a folder. What each of its files does:
//     store_files.cc     opening, loading, names, listing
//     store_save.cc      saving
//     store_verify.cc    trust: stamps, verification
//     store_gc.cc        collection
//     store_transfer.cc  export and import
// Locks: a file lock for each call (shared; exclusive for gc), `save_mutex_` for what writes pieces,
// `cache_mutex_` for the open packs, never held while a file is read in full.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "snapshot/piece_index.h"
#include "snapshot/store.h"
#include "snapshot/store_folder.h"
#include "snapshot/stored_snapshot.h"

namespace driftwood::snapshot {

class FolderStore final : public Store {
 public:
  FolderStore(StoreFolder folder, int threads) : folder_(std::move(folder)), threads_(threads) {}

  const std::string& path() const override { return folder_.path(); }
  Result<SaveReport> save(const SnapshotContents& contents, const std::string& name) override;
  Result<std::shared_ptr<const StoredSnapshot>> load(std::string_view which, Verify verify) override;
  Result<std::string> resolve(std::string_view which) override;
  Result<std::string> named(const std::string& name) override;
  Result<std::vector<StoreEntry>> list() override;
  Status set_name(const std::string& name, const std::string& hash) override;
  Status remove_name(const std::string& name) override;
  Status verify(std::string_view which) override;
  Result<GcReport> gc(const GcOptions& options) override;
  Result<WrittenSnapshot> export_file(std::string_view which, const std::string& path) override;
  Result<SaveReport> import_file(const std::string& path, const std::string& name,
                                 const AcceptFile& accept) override;

 private:
  friend class SnapshotSave;
  friend class Collection;

  // All of these want a lock to be held.
  Result<std::string> resolve_locked(std::string_view which);
  Result<std::shared_ptr<const PackedSnapshot>> load_locked(const std::string& hash, Verify verify);
  Result<std::vector<std::shared_ptr<PackFile>>> open_packs(const Manifest& manifest);
  // From the cache if the file is still the one that was opened.
  Result<std::shared_ptr<PackFile>> open_pack(const Digest& name);
  void forget_pack(const Digest& name);
  // The snapshot as it was loaded before, if none of its files was touched since.
  std::shared_ptr<const PackedSnapshot> loaded_before(const std::string& hash);
  void trim_cache();
  Status check_snapshot(const PackedSnapshot& snapshot, bool trusted_manifest, Verify verify);
  // All of it; whether it is whole decides whether it is trusted from now on.
  Status verify_pack(const PackFile& pack);
  Status conclude_pack(const PackFile& pack, const Status& status);
  Status verify_all();
  Status verify_manifest(const std::string& hash);
  // Nothing, if it is in the store and its packs are there.
  bool has_snapshot(const std::string& hash);
  // Brings the index up to the packs folder. With save_mutex_.
  Status refresh_index();
  Digest zero_digest(uint64_t length);

  const StoreFolder folder_;
  const int threads_;
  std::mutex save_mutex_;
  PieceIndex index_;
  std::map<uint64_t, Digest> zero_digests_;

  struct CachedPack {
    std::shared_ptr<PackFile> pack;
    uint64_t used = 0;
  };
  std::mutex cache_mutex_;
  struct CachedSnapshot {
    std::shared_ptr<const PackedSnapshot> snapshot;
    uint64_t used = 0;
  };
  std::map<Digest, CachedPack> packs_;
  std::map<std::string, CachedSnapshot> snapshots_;  // by hash; checked
  uint64_t clock_ = 0;
};

}  // namespace driftwood::snapshot
