// Trust: what is taken at its word, what is read.
#include <algorithm>

#include "snapshot/store_files.h"

namespace driftwood::snapshot {
namespace {

// The first fault's code, the messages of all.
class Faults {
 public:
  void add(const Status& status) {
    if (status.is_ok()) return;
    ++count_;
    if (count_ == 1) code_ = status.code();
    if (count_ <= kMostTold) text_ += (count_ == 1 ? "" : "; ") + status.message();
  }
  Status status() const {
    if (count_ == 0) return Status::ok();
    const size_t more = count_ - std::min(count_, kMostTold);
    return Status(code_, text_ + (more == 0 ? "" : "; and " + std::to_string(more) + " more"));
  }

 private:
  static constexpr size_t kMostTold = 20;
  size_t count_ = 0;
  Code code_ = Code::kOk;
  std::string text_;
};

}  // namespace

Status FolderStore::verify_pack(const PackFile& pack) {
  ContentsCheck check;
  pack.expect_contents(&check);
  return conclude_pack(pack, check.run(threads_));
}

Status FolderStore::conclude_pack(const PackFile& pack, const Status& status) {
  const std::string hash = to_hex(pack.name());
  pack.set_trusted(status.is_ok());
  if (status.is_ok()) {
    folder_.record_stamp(StoreFile::kPack, hash, pack.stamp());
  } else {
    folder_.remove_stamp(StoreFile::kPack, hash);
  }
  return status;
}

// A pack with damage elsewhere still serves those whose pieces are whole: these are read one by one.
Status FolderStore::check_snapshot(const PackedSnapshot& snapshot, bool trusted_manifest, Verify verify) {
  const Manifest& manifest = snapshot.manifest();
  const bool full = verify == Verify::kFull;
  std::vector<const PackFile*> packs;
  for (const std::shared_ptr<PackFile>& pack : snapshot.packs()) {
    if (full || !pack->trusted()) packs.push_back(pack.get());
  }
  const bool whole_manifest = full || !trusted_manifest;
  if (!whole_manifest && packs.empty()) return Status::ok();
  std::vector<ContentsCheck> checks(packs.size() + 1);  // the manifest's last
  if (whole_manifest) manifest.expect_contents(&checks.back());
  for (size_t i = 0; i < packs.size(); ++i) packs[i]->expect_contents(&checks[i]);
  ContentsCheck::run(checks, threads_);
  for (size_t i = 0; i < packs.size(); ++i) (void)conclude_pack(*packs[i], checks[i].status()).is_ok();
  if (whole_manifest) {
    DW_RETURN_IF_ERROR(checks.back().status());
    DW_RETURN_IF_ERROR(manifest.check_hash());
  }
  DW_RETURN_IF_ERROR(snapshot.check_trusted_pieces());
  DW_RETURN_IF_ERROR(snapshot.verify_other_pieces(threads_));
  if (!trusted_manifest) folder_.record_stamp(StoreFile::kManifest, manifest.hash(), manifest.stamp());
  return Status::ok();
}

Status FolderStore::verify(std::string_view which) {
  if (!which.empty()) {
    const auto loaded = load(which, Verify::kFull);
    return loaded.is_ok() ? Status::ok() : loaded.status();
  }
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_reading());
  return verify_all();
}

Status FolderStore::verify_all() {
  Faults faults;
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing packs, folder_.list(StoreFile::kPack));
  for (const std::string& hash : packs.hashes) {
    Digest name;
    DW_CHECK(from_hex(hash, &name), "listed as a hash");
    const auto pack = open_pack(name);
    faults.add(pack.is_ok() ? verify_pack(**pack) : pack.status());
    trim_cache();
  }
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing manifests, folder_.list(StoreFile::kManifest));
  for (const std::string& hash : manifests.hashes) faults.add(verify_manifest(hash));
  DW_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder_.list_names());
  for (const std::string& name : names) {
    const Result<std::string> hash = folder_.read_name(name);
    if (!hash.is_ok()) {
      faults.add(hash.status());
    } else if (std::find(manifests.hashes.begin(), manifests.hashes.end(), *hash) == manifests.hashes.end()) {
      faults.add(data_loss(folder_.name_file(name) + ": its snapshot " + *hash + " is not in the store"));
    }
  }
  return faults.status();
}

Status FolderStore::verify_manifest(const std::string& hash) {
  DW_ASSIGN_OR_RETURN(const auto snapshot, load_locked(hash, Verify::kIfTouched));
  DW_RETURN_IF_ERROR(snapshot->manifest().verify(threads_));
  DW_RETURN_IF_ERROR(snapshot->check_trusted_pieces());
  return snapshot->verify_other_pieces(threads_);
}

}  // namespace driftwood::snapshot
