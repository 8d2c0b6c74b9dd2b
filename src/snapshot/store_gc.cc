#include "snapshot/store_gc.h"

#include <algorithm>

#include "os/folder_changes.h"
#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

// Calls visit(pack's name, offset, length) for every piece that is not zero, in order.
template <typename Visit>
void visit_places(const Manifest& manifest, Visit visit) {
  for (const Manifest::Placed& tensor : manifest.placed()) {
    uint64_t piece = 0;
    for (const PieceRun& run : tensor.runs) {
      for (uint64_t i = 0; i < run.pieces; ++i, ++piece) {
        const uint64_t size = tensor.tensor->piece_bytes;
        const uint64_t length = std::min(size, tensor.bytes - piece * size);
        if (run.pack == kZeroPack) continue;
        visit(manifest.packs()[run.pack], run.offset + i * padded_bytes(length), length);
      }
    }
  }
}

}  // namespace

Status Collection::find_roots() {
  DW_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder_.list_names());
  for (const std::string& name : names) {
    const Result<std::string> hash = folder_.read_name(name);
    if (hash.is_ok()) {
      named_.insert(*hash);
    } else {
      report_.kept_for.push_back(hash.status().message());
    }
  }
  for (const std::string& hash : named_) read_manifest(hash);
  return Status::ok();
}

void Collection::read_manifest(const std::string& hash) {
  const auto manifest = Manifest::open(folder_.file(StoreFile::kManifest, hash), hash);
  const Status status = manifest.is_ok() ? (*manifest)->verify(store_->threads_) : manifest.status();
  if (status.is_ok()) {
    manifests_.push_back(*manifest);
  } else {
    report_.kept_for.push_back(status.message());
  }
}

// While a name can't be read, any snapshot may be its.
Status Collection::remove_manifests() {
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing listing, folder_.list(StoreFile::kManifest));
  if (keeps_packs()) return Status::ok();
  for (const std::string& hash : listing.hashes) {
    if (named_.contains(hash)) continue;
    const std::string path = folder_.file(StoreFile::kManifest, hash);
    const Result<os::FileStamp> stamp = os::stamp_of(path);
    if (!dry_run_) DW_RETURN_IF_ERROR(os::remove_file(path));
    if (stamp.is_ok()) report_.bytes_freed += stamp->size_bytes;
    ++report_.snapshots_removed;
  }
  if (dry_run_ || report_.snapshots_removed == 0) return Status::ok();
  return os::flush_folder(folder_.snapshots());
}

Status Collection::survey_packs() {
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing listing, folder_.list(StoreFile::kPack));
  for (const std::string& hash : listing.hashes) {
    Pack pack;
    pack.hash = hash;
    DW_CHECK(from_hex(hash, &pack.name), "listed as a hash");
    const Result<os::FileStamp> stamp = os::stamp_of(folder_.file(StoreFile::kPack, hash));
    if (stamp.is_ok()) pack.file_bytes = stamp->size_bytes;
    packs_.emplace(pack.name, std::move(pack));
  }
  mark_alive();
  choose_rewrites();
  return Status::ok();
}

void Collection::mark_alive() {
  for (const auto& manifest : manifests_) {
    visit_places(*manifest, [&](const Digest& name, uint64_t offset, uint64_t length) {
      const auto pack = packs_.find(name);
      if (pack == packs_.end()) return;  // lost; load() tells
      if (pack->second.alive.insert(offset).second) pack->second.alive_bytes += padded_bytes(length);
    });
  }
}

// Less than half alive: worth a copy.
void Collection::choose_rewrites() {
  for (auto& [name, pack] : packs_) {
    if (pack.alive.empty()) continue;
    const auto opened = store_->open_pack(name);
    if (!opened.is_ok()) continue;
    for (const PieceClass& in : (*opened)->classes()) pack.piece_bytes += in.count * in.stride;
    pack.rewrite = 2 * pack.alive_bytes < pack.piece_bytes;
    store_->trim_cache();
  }
}

Status Collection::remove_pack(const Pack& pack) {
  if (!dry_run_) {
    DW_RETURN_IF_ERROR(os::remove_file(folder_.file(StoreFile::kPack, pack.hash)));
    store_->forget_pack(pack.name);
  }
  report_.bytes_freed += pack.file_bytes;
  return Status::ok();
}

Status Collection::remove_dead_packs() {
  for (const auto& [name, pack] : packs_) {
    if (!pack.alive.empty()) continue;
    DW_RETURN_IF_ERROR(remove_pack(pack));
    ++report_.packs_removed;
  }
  return Status::ok();
}

// A pack with a damaged piece stays as it is.
void Collection::open_sources() {
  for (auto& [name, pack] : packs_) {
    if (!pack.rewrite) continue;
    const auto source = store_->open_pack(name);
    if (source.is_ok() && store_->verify_pack(**source).is_ok()) {
      sources_.push_back(*source);
    } else {
      pack.rewrite = false;
    }
  }
}

// In the order of the snapshots' tensors: neighbours stay neighbours.
std::map<uint64_t, std::vector<Collection::Place>> Collection::pieces_to_copy() const {
  std::map<uint64_t, std::vector<Place>> classes;
  std::set<Place> seen;
  for (const auto& manifest : manifests_) {
    visit_places(*manifest, [&](const Digest& name, uint64_t offset, uint64_t length) {
      const auto pack = packs_.find(name);
      if (pack == packs_.end() || !pack->second.rewrite || !seen.insert({name, offset}).second) return;
      classes[length].push_back({name, offset});
    });
  }
  return classes;
}

Status Collection::copy_pieces(const std::map<uint64_t, std::vector<Place>>& classes, PackWriter* writer) {
  for (const auto& [length, places] : classes) {
    writer->begin_class(length);
    for (const Place& place : places) {
      const auto source = std::find_if(sources_.begin(), sources_.end(),
                                       [&](const auto& pack) { return pack->name() == place.first; });
      const auto at = (*source)->find(place.second);
      if (!at.has_value() || at->in->length != length) {
        return data_loss((*source)->path() + ": has no piece of " + std::to_string(length) + " bytes at " +
                         std::to_string(place.second));
      }
      DW_ASSIGN_OR_RETURN(moved_[place], writer->add((*source)->piece(*at), at->in->digests[at->index]));
    }
    DW_RETURN_IF_ERROR(writer->end_class());
  }
  return Status::ok();
}

ManifestPlaces Collection::moved_places(const Manifest& manifest, const Digest& new_pack) const {
  ManifestPlaces places{manifest.hash(), {}, {}};
  std::map<Digest, uint64_t> numbers;
  for (const Manifest::Placed& tensor : manifest.placed()) {
    uint64_t piece = 0;
    bool first = true;
    for (const PieceRun& run : tensor.runs) {
      if (run.pack == kZeroPack) {
        places.runs.push_back(run);
        piece += run.pieces;
        first = true;  // what follows is a new run
        continue;
      }
      for (uint64_t i = 0; i < run.pieces; ++i, ++piece) {
        const uint64_t size = tensor.tensor->piece_bytes;
        const uint64_t length = std::min(size, tensor.bytes - piece * size);
        Place at{manifest.packs()[run.pack], run.offset + i * padded_bytes(length)};
        const auto moved = moved_.find(at);
        if (moved != moved_.end()) at = {new_pack, moved->second};
        const auto [number, added] = numbers.emplace(at.first, places.packs.size());
        if (added) places.packs.push_back(at.first);
        const bool short_piece = length != size;
        if (!first && !short_piece && places.runs.back().pack == number->second &&
            places.runs.back().offset + places.runs.back().pieces * padded_bytes(size) == at.second) {
          ++places.runs.back().pieces;
        } else {
          places.runs.push_back({1, number->second, at.second});
        }
        first = false;
      }
    }
  }
  return places;
}

Status Collection::replace_manifests(const Digest& new_pack) {
  for (const auto& manifest : manifests_) {
    const bool touched =
        std::any_of(manifest->packs().begin(), manifest->packs().end(), [&](const Digest& name) {
          const auto pack = packs_.find(name);
          return pack != packs_.end() && pack->second.rewrite;
        });
    if (!touched) continue;
    DW_ASSIGN_OR_RETURN(os::AtomicFile file,
                        os::AtomicFile::create(folder_.snapshots() + kNewFile, os::FileAccess::kPrivate));
    DW_ASSIGN_OR_RETURN(const uint64_t written,
                        write_manifest(&file, manifest->path(), manifest->contents(), manifest->digests(),
                                       moved_places(*manifest, new_pack)));
    (void)written;
    DW_ASSIGN_OR_RETURN(const os::FileStamp stamp, file.commit_as(manifest->path()));
    folder_.record_stamp(StoreFile::kManifest, manifest->hash(), stamp);
  }
  return Status::ok();
}

Status Collection::rewrite_packs() {
  size_t count = 0;
  uint64_t alive = 0;
  for (const auto& [name, pack] : packs_) {
    count += pack.rewrite ? 1 : 0;
    alive += pack.rewrite ? pack.alive_bytes : 0;
  }
  if (count == 0) return Status::ok();
  if (dry_run_) {
    report_.packs_rewritten = count;
    for (const auto& [name, pack] : packs_) report_.bytes_freed += pack.rewrite ? pack.file_bytes : 0;
    report_.bytes_freed -= std::min(report_.bytes_freed, alive);
    return Status::ok();
  }
  open_sources();
  const auto classes = pieces_to_copy();
  PackWriter writer(folder_.packs(), classes.size());
  DW_RETURN_IF_ERROR(copy_pieces(classes, &writer));
  if (writer.empty()) return Status::ok();
  DW_ASSIGN_OR_RETURN(const Digest new_pack, writer.finish());
  const std::string hash = to_hex(new_pack);
  DW_ASSIGN_OR_RETURN(const os::FileStamp stamp, writer.commit(folder_.file(StoreFile::kPack, hash)));
  folder_.record_stamp(StoreFile::kPack, hash, stamp);
  store_->forget_pack(new_pack);
  DW_RETURN_IF_ERROR(replace_manifests(new_pack));
  for (const auto& [name, pack] : packs_) {
    if (!pack.rewrite || name == new_pack) continue;
    DW_RETURN_IF_ERROR(remove_pack(pack));
    ++report_.packs_rewritten;
  }
  report_.bytes_freed -= std::min(report_.bytes_freed, writer.bytes());
  return Status::ok();
}

Status Collection::remove_temporary(const std::string& folder) {
  DW_ASSIGN_OR_RETURN(const std::vector<std::string> names, os::names_in_folder(folder));
  for (const std::string& name : names) {
    if (!is_temporary(name)) continue;
    const std::string path = folder + "/" + name;
    const Result<os::FileStamp> stamp = os::stamp_of(path);
    if (!stamp.is_ok()) continue;
    if (!dry_run_) DW_RETURN_IF_ERROR(os::remove_file(path));
    report_.bytes_freed += stamp->size_bytes;
  }
  return Status::ok();
}

Status Collection::remove_stray_stamps() {
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing packs, folder_.list(StoreFile::kPack));
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing manifests, folder_.list(StoreFile::kManifest));
  std::set<std::string> wanted;
  for (const std::string& hash : packs.hashes) wanted.insert(folder_.stamp_file(StoreFile::kPack, hash));
  for (const std::string& hash : manifests.hashes)
    wanted.insert(folder_.stamp_file(StoreFile::kManifest, hash));
  DW_ASSIGN_OR_RETURN(const std::vector<std::string> names, os::names_in_folder(folder_.stamps()));
  for (const std::string& name : names) {
    const std::string path = folder_.stamps() + "/" + name;
    const bool ours = name.starts_with("pack-") || name.starts_with("snapshot-");
    if (ours && !wanted.contains(path)) DW_RETURN_IF_ERROR(os::remove_file(path));
  }
  return Status::ok();
}

Result<GcReport> Collection::run() {
  DW_RETURN_IF_ERROR(find_roots());
  DW_RETURN_IF_ERROR(remove_manifests());
  if (!keeps_packs()) {
    DW_RETURN_IF_ERROR(survey_packs());
    DW_RETURN_IF_ERROR(remove_dead_packs());
    DW_RETURN_IF_ERROR(rewrite_packs());
    if (!dry_run_ && report_.packs_removed + report_.packs_rewritten > 0) {
      DW_RETURN_IF_ERROR(os::flush_folder(folder_.packs()));
    }
  }
  for (const std::string& folder :
       {folder_.path(), folder_.packs(), folder_.snapshots(), folder_.names(), folder_.stamps()}) {
    DW_RETURN_IF_ERROR(remove_temporary(folder));
  }
  if (!dry_run_) DW_RETURN_IF_ERROR(remove_stray_stamps());
  return std::move(report_);
}

Result<GcReport> FolderStore::gc(const GcOptions& options) {
  const std::lock_guard turn(save_mutex_);
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_writing(os::FileLock::Kind::kExclusive));
  {
    const std::lock_guard hold(cache_mutex_);
    snapshots_.clear();
  }
  return Collection(this, options.dry_run).run();
}

}  // namespace driftwood::snapshot
