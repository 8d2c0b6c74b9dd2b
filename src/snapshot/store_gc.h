// Collection: one run of gc() on a store whose exclusive lock is held.
//
// Order, so that being killed between any two steps loses nothing that a name needs: manifests without a name
// go first; packs that nobody needs; a new pack with what is alive in mostly dead ones, durable; the
// manifests that need it, each replaced whole; then the old packs; then what crashes left. Nothing that a
// manifest may need is removed while one with a name can't be read.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "snapshot/pack_writer.h"
#include "snapshot/store_files.h"

namespace driftwood::snapshot {

class Collection {
 public:
  Collection(FolderStore* store, bool dry_run) : store_(store), folder_(store->folder_), dry_run_(dry_run) {}
  Result<GcReport> run();

 private:
  // A piece that a snapshot needs, by its place.
  using Place = std::pair<Digest, uint64_t>;  // pack, file offset
  struct Pack {
    std::string hash;
    Digest name{};
    uint64_t file_bytes = 0;
    uint64_t piece_bytes = 0;  // of all its pieces; 0 if it can't be opened
    std::set<uint64_t> alive;  // offsets
    uint64_t alive_bytes = 0;
    bool rewrite = false;
  };

  Status find_roots();
  void read_manifest(const std::string& hash);
  Status remove_manifests();
  Status survey_packs();
  void mark_alive();
  void choose_rewrites();
  Status remove_dead_packs();
  Status rewrite_packs();
  void open_sources();
  std::map<uint64_t, std::vector<Place>> pieces_to_copy() const;  // by length
  Status copy_pieces(const std::map<uint64_t, std::vector<Place>>& classes, PackWriter* writer);
  Status replace_manifests(const Digest& new_pack);
  ManifestPlaces moved_places(const Manifest& manifest, const Digest& new_pack) const;
  Status remove_pack(const Pack& pack);
  Status remove_temporary(const std::string& folder);
  Status remove_stray_stamps();
  bool keeps_packs() const { return !report_.kept_for.empty(); }

  FolderStore* store_;
  const StoreFolder& folder_;
  const bool dry_run_;
  std::set<std::string> named_;
  std::vector<std::shared_ptr<const Manifest>> manifests_;  // with a name, readable
  std::map<Digest, Pack> packs_;
  std::map<Place, uint64_t> moved_;  // to the offset in the new pack
  std::vector<std::shared_ptr<PackFile>> sources_;
  GcReport report_;
};

}  // namespace driftwood::snapshot
