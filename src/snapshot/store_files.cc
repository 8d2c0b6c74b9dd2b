#include "snapshot/store_files.h"

#include <algorithm>

#include "os/folder_changes.h"
#include "snapshot/container.h"
#include "snapshot/store_damage.h"

namespace driftwood::snapshot {
namespace {

constexpr size_t kMaxCachedPacks = 64;  // open although no snapshot holds them
constexpr size_t kMaxCachedSnapshots = 8;
constexpr size_t kMinPrefix = 8;

template <typename Cache>
void drop_oldest(Cache* cache, size_t most) {
  while (cache->size() > most) {
    auto oldest = cache->begin();
    for (auto at = cache->begin(); at != cache->end(); ++at) {
      if (at->second.used < oldest->second.used) oldest = at;
    }
    cache->erase(oldest);
  }
}

bool is_hash_prefix(std::string_view text) {
  return text.size() >= kMinPrefix && text.size() <= 2 * sizeof(Digest) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& path, const StoreOptions& options) {
  DW_ASSIGN_OR_RETURN(StoreFolder folder, StoreFolder::open(path, options.create, options.read_only));
  return std::unique_ptr<Store>(new FolderStore(std::move(folder), std::max(options.threads, 1)));
}

Result<std::string> FolderStore::resolve(std::string_view which) {
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_reading());
  return resolve_locked(which);
}

Result<std::string> FolderStore::named(const std::string& name) {
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_reading());
  return folder_.read_name(name);
}

bool Store::is_name(std::string_view name) { return StoreFolder::is_name(name); }

Result<std::string> FolderStore::resolve_locked(std::string_view which) {
  const std::string text(which.substr(0, 256));
  if (StoreFolder::is_name(which)) {
    auto hash = folder_.read_name(text);
    if (hash.is_ok() || hash.status().code() != Code::kNotFound) return hash;
  }
  const Status missing = not_found(path() + ": has no snapshot '" + text.substr(0, 80) + "'");
  if (!is_hash_prefix(which)) return missing;
  if (which.size() == 2 * sizeof(Digest)) {
    return os::stamp_of(folder_.file(StoreFile::kManifest, text)).status().code() == Code::kNotFound
               ? Result<std::string>(missing)
               : Result<std::string>(text);
  }
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing listing, folder_.list(StoreFile::kManifest));
  std::string found;
  for (const std::string& hash : listing.hashes) {
    if (!hash.starts_with(which)) continue;
    if (!found.empty()) {
      return invalid_argument(path() + ": several snapshots begin with '" + text + "': " + found + " and " +
                              hash);
    }
    found = hash;
  }
  if (found.empty()) return missing;
  return found;
}

Result<std::shared_ptr<const StoredSnapshot>> FolderStore::load(std::string_view which, Verify verify) {
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_reading());
  DW_ASSIGN_OR_RETURN(const std::string hash, resolve_locked(which));
  auto snapshot = load_locked(hash, verify);
  if (!snapshot.is_ok()) return snapshot.status().with_context("snapshot '" + std::string(which) + "'");
  return std::shared_ptr<const StoredSnapshot>(std::move(*snapshot));
}

Result<std::shared_ptr<const PackedSnapshot>> FolderStore::load_locked(const std::string& hash,
                                                                       Verify verify) {
  if (verify == Verify::kIfTouched) {
    if (auto before = loaded_before(hash)) return before;
  }
  auto opened = Manifest::open(folder_.file(StoreFile::kManifest, hash), hash);
  DW_RETURN_IF_ERROR(as_damage(opened.status()));
  std::shared_ptr<const Manifest> manifest = std::move(*opened);
  const bool trusted = folder_.stamp_matches(StoreFile::kManifest, hash, manifest->stamp());
  DW_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<PackFile>> packs, open_packs(*manifest));
  DW_ASSIGN_OR_RETURN(std::shared_ptr<const PackedSnapshot> snapshot,
                      PackedSnapshot::create(std::move(manifest), std::move(packs)));
  DW_RETURN_IF_ERROR(check_snapshot(*snapshot, trusted, verify));
  const std::lock_guard hold(cache_mutex_);
  snapshots_[hash] = {snapshot, ++clock_};
  drop_oldest(&snapshots_, kMaxCachedSnapshots);
  return snapshot;
}

std::shared_ptr<const PackedSnapshot> FolderStore::loaded_before(const std::string& hash) {
  std::shared_ptr<const PackedSnapshot> snapshot;
  {
    const std::lock_guard hold(cache_mutex_);
    const auto cached = snapshots_.find(hash);
    if (cached == snapshots_.end()) return nullptr;
    cached->second.used = ++clock_;
    snapshot = cached->second.snapshot;
  }
  const auto untouched = [](const std::string& path, const os::FileStamp& stamp) {
    const Result<os::FileStamp> now = os::stamp_of(path);
    return now.is_ok() && same_stamp(*now, stamp);
  };
  bool good = untouched(snapshot->manifest().path(), snapshot->manifest().stamp());
  for (const std::shared_ptr<PackFile>& pack : snapshot->packs()) {
    good = good && pack->trusted() && untouched(pack->path(), pack->stamp());
  }
  if (good) return snapshot;
  const std::lock_guard hold(cache_mutex_);
  snapshots_.erase(hash);
  return nullptr;
}

Result<std::vector<std::shared_ptr<PackFile>>> FolderStore::open_packs(const Manifest& manifest) {
  std::vector<std::shared_ptr<PackFile>> packs;
  for (const Digest& name : manifest.packs()) {
    auto pack = open_pack(name);
    if (!pack.is_ok()) return as_damage(pack.status()).with_context(manifest.path() + ": one of its packs");
    packs.push_back(std::move(*pack));
  }
  trim_cache();
  return packs;
}

Result<std::shared_ptr<PackFile>> FolderStore::open_pack(const Digest& name) {
  const std::string hash = to_hex(name);
  const std::string file = folder_.file(StoreFile::kPack, hash);
  DW_ASSIGN_OR_RETURN(const os::FileStamp stamp, os::stamp_of(file));
  {
    const std::lock_guard hold(cache_mutex_);
    const auto cached = packs_.find(name);
    if (cached != packs_.end() && same_stamp(cached->second.pack->stamp(), stamp)) {
      cached->second.used = ++clock_;
      return cached->second.pack;
    }
  }
  auto opened = PackFile::open(file, name);
  DW_RETURN_IF_ERROR(as_damage(opened.status()));
  std::shared_ptr<PackFile> pack = std::move(*opened);
  pack->set_trusted(folder_.stamp_matches(StoreFile::kPack, hash, pack->stamp()));
  const std::lock_guard hold(cache_mutex_);
  packs_[name] = {pack, ++clock_};
  return pack;
}

void FolderStore::forget_pack(const Digest& name) {
  const std::lock_guard hold(cache_mutex_);
  packs_.erase(name);
}

void FolderStore::trim_cache() {
  const std::lock_guard hold(cache_mutex_);
  drop_oldest(&packs_, kMaxCachedPacks);
}

Result<std::vector<StoreEntry>> FolderStore::list() {
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_reading());
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing listing, folder_.list(StoreFile::kManifest));
  DW_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder_.list_names());
  std::map<std::string, std::vector<std::string>> names_of;
  std::vector<StoreEntry> entries;
  for (const std::string& name : names) {
    const Result<std::string> hash = folder_.read_name(name);
    const bool there = hash.is_ok() &&
                       std::find(listing.hashes.begin(), listing.hashes.end(), *hash) != listing.hashes.end();
    if (there) {
      names_of[*hash].push_back(name);
      continue;
    }
    StoreEntry entry;
    entry.names = {name};
    entry.status =
        hash.is_ok() ? data_loss("name '" + name + "': there is no snapshot " + *hash) : hash.status();
    entries.push_back(std::move(entry));
  }
  for (const std::string& hash : listing.hashes) {
    StoreEntry entry;
    entry.hash = hash;
    entry.names = names_of[hash];
    const auto manifest = Manifest::open(folder_.file(StoreFile::kManifest, hash), hash);
    entry.status = manifest.status();
    if (manifest.is_ok()) {
      entry.parent = (*manifest)->origin().parent;
      entry.created_ns = (*manifest)->origin().created_ns;
      entry.bytes_total = (*manifest)->bytes_total();
    }
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const StoreEntry& a, const StoreEntry& b) { return a.created_ns < b.created_ns; });
  return entries;
}

Status FolderStore::set_name(const std::string& name, const std::string& hash) {
  DW_RETURN_IF_ERROR(folder_.check_name(name));
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_writing(os::FileLock::Kind::kShared));
  Digest digest;
  if (!from_hex(hash, &digest)) return invalid_argument(path() + ": '" + hash.substr(0, 80) + "' is no hash");
  DW_ASSIGN_OR_RETURN(const std::string there, resolve_locked(hash));
  return folder_.write_name(name, there);
}

Status FolderStore::remove_name(const std::string& name) {
  DW_RETURN_IF_ERROR(folder_.check_name(name));
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_writing(os::FileLock::Kind::kShared));
  return folder_.remove_name(name);
}

}  // namespace driftwood::snapshot
