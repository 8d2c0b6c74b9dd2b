// Saving: hash what is not known, write what is not there, then the manifest, then the name.
#include <algorithm>
#include <unordered_map>

#include "os/folder_changes.h"
#include "snapshot/container.h"
#include "snapshot/pack_writer.h"
#include "snapshot/piece_hasher.h"
#include "snapshot/store_files.h"

namespace driftwood::snapshot {
namespace {

constexpr Digest kUnknown{};
// More runs than this in one tensor, and the tensor is written anew: restoring maps run by run.
constexpr size_t kMaxRuns = 64;
constexpr uint32_t kZeros = ~uint32_t{0};  // PiecePlace::pack of a piece that takes no room
constexpr uint32_t kNewPack = kZeros - 1;  // and of one in this save's pack
constexpr PiecePlace kNowhere{kZeros, ~uint64_t{0}};

}  // namespace

class SnapshotSave {
 public:
  SnapshotSave(FolderStore* store, const SnapshotContents& contents) : store_(store), contents_(contents) {}
  Result<SaveReport> run(const std::string& name);

 private:
  struct Tensor {
    const SectionTensor* in = nullptr;
    size_t index = 0;  // among all tensors
    std::vector<ByteSpan> pieces;
    std::vector<size_t> jobs;  // of the hasher; for pieces that are not known
    std::vector<PiecePlace> places;
  };
  // Pieces of one length in one tensor.
  struct Range {
    size_t tensor = 0;
    size_t first = 0;
    size_t count = 0;
  };

  void plan();
  Status write_pieces();
  Status write_range(const Range& range, uint64_t length);
  Result<PiecePlace> place_piece(Tensor* tensor, size_t piece, PiecePlace wanted);
  Result<PiecePlace> add_piece(const Tensor& tensor, size_t piece);
  bool is_scattered(const Tensor& tensor, const Range& range, uint64_t length) const;
  Status rewrite_range(const Range& range, uint64_t pieces_before);
  ManifestPlaces places_for_manifest(const std::string& hash, const Digest& pack) const;
  Status write_files(const std::string& hash, const std::string& name);
  Status place_pack(const Digest& pack_name);
  void report_digests();

  FolderStore* store_;
  const SnapshotContents& contents_;
  std::vector<TensorDigests> digests_;
  std::vector<Tensor> tensors_;  // with pieces
  std::map<uint64_t, std::vector<Range>> classes_;
  std::unique_ptr<PieceHasher> hasher_;
  std::unique_ptr<PackWriter> pack_;
  std::unordered_map<Digest, uint64_t, DigestHash> new_pieces_;  // of the present class: offsets
  std::vector<Digest> class_digests_;                            // in the order they were added
  SaveReport report_;
};

// Which pieces there are, in the order in which they will be written, and which of them must be hashed.
void SnapshotSave::plan() {
  size_t index = 0;
  for (const Section& section : contents_.sections) {
    for (const SectionTensor& in : section.tensors) {
      report_.bytes_total += *tensor_bytes(in.dtype, in.shape);
      digests_.emplace_back();
      const size_t at = index++;
      if (in.piece_bytes == 0) continue;
      Tensor tensor{&in, at, cut(in), {}, {}};
      const size_t count = tensor.pieces.size();
      digests_[at].pieces.resize(count);
      if (!in.known.empty()) digests_[at].pieces = in.known;
      tensor.jobs.resize(count);
      tensor.places.assign(count, kNowhere);
      report_.pieces_total += count;
      const size_t whole = count - (count > 0 && tensor.pieces.back().size() != in.piece_bytes ? 1 : 0);
      if (whole > 0) classes_[in.piece_bytes].push_back({tensors_.size(), 0, whole});
      if (whole < count) classes_[tensor.pieces.back().size()].push_back({tensors_.size(), whole, 1});
      tensors_.push_back(std::move(tensor));
    }
  }
  std::vector<PieceJob> jobs;
  for (const auto& [length, ranges] : classes_) {
    for (const Range& range : ranges) {
      Tensor& tensor = tensors_[range.tensor];
      for (size_t i = range.first; i < range.first + range.count; ++i) {
        if (digests_[tensor.index].pieces[i] != kUnknown) continue;
        tensor.jobs[i] = jobs.size();
        jobs.push_back({tensor.pieces[i]});
      }
    }
  }
  hasher_ = std::make_unique<PieceHasher>(std::move(jobs), store_->threads_);
  pack_ = std::make_unique<PackWriter>(store_->folder_.packs(), classes_.size());
}

Result<PiecePlace> SnapshotSave::add_piece(const Tensor& tensor, size_t piece) {
  const Digest& digest = digests_[tensor.index].pieces[piece];
  DW_ASSIGN_OR_RETURN(const uint64_t offset, pack_->add(tensor.pieces[piece], digest));
  new_pieces_[digest] = offset;
  class_digests_.push_back(digest);
  return PiecePlace{kNewPack, offset};
}

// `wanted`: behind the piece before.
Result<PiecePlace> SnapshotSave::place_piece(Tensor* tensor, size_t piece, PiecePlace wanted) {
  Digest& digest = digests_[tensor->index].pieces[piece];
  const uint64_t length = tensor->pieces[piece].size();
  bool zero = false;
  if (digest == kUnknown) {
    const PieceJob& job = hasher_->wait(tensor->jobs[piece]);
    zero = job.zero;
    digest = zero ? store_->zero_digest(length) : job.digest;
  } else {
    zero = digest == store_->zero_digest(length);
  }
  if (zero) return PiecePlace{kZeros, 0};
  const auto in_this = new_pieces_.find(digest);
  if (in_this != new_pieces_.end() && wanted == PiecePlace{kNewPack, in_this->second}) return wanted;
  const std::optional<PiecePlace> there = store_->index_.find(digest, length, wanted);
  if (there.has_value()) return *there;
  if (in_this != new_pieces_.end()) return PiecePlace{kNewPack, in_this->second};
  return add_piece(*tensor, piece);
}

bool SnapshotSave::is_scattered(const Tensor& tensor, const Range& range, uint64_t length) const {
  if (length % kUnitBytes != 0) return false;  // padded pieces are never neighbours
  size_t runs = 0;
  size_t fewest = 0;  // zeros part them in any case
  PiecePlace next = kNowhere;
  for (size_t i = range.first; i < range.first + range.count; ++i) {
    const PiecePlace& at = tensor.places[i];
    if (at.pack != kZeros && at != next) ++runs;
    if (at.pack != kZeros && next.pack == kZeros) ++fewest;
    next = at.pack == kZeros ? kNowhere : PiecePlace{at.pack, at.offset + length};
  }
  return runs > std::max(kMaxRuns, 2 * fewest);
}

// Pieces that are known are taken at their word here too: their bytes are read, not hashed.
Status SnapshotSave::rewrite_range(const Range& range, uint64_t pieces_before) {
  pack_->rewind(pieces_before);
  while (class_digests_.size() > pieces_before) {
    new_pieces_.erase(class_digests_.back());
    class_digests_.pop_back();
  }
  Tensor& tensor = tensors_[range.tensor];
  for (size_t i = range.first; i < range.first + range.count; ++i) {
    if (tensor.places[i].pack == kZeros) continue;
    DW_ASSIGN_OR_RETURN(tensor.places[i], add_piece(tensor, i));
  }
  return Status::ok();
}

Status SnapshotSave::write_range(const Range& range, uint64_t length) {
  Tensor& tensor = tensors_[range.tensor];
  const uint64_t before = pack_->count();
  PiecePlace wanted = kNowhere;
  for (size_t i = range.first; i < range.first + range.count; ++i) {
    DW_ASSIGN_OR_RETURN(const PiecePlace at, place_piece(&tensor, i, wanted));
    tensor.places[i] = at;
    wanted = {at.pack, at.offset + padded_bytes(length)};
    if (at.pack == kZeros) ++report_.pieces_zero;
  }
  return is_scattered(tensor, range, length) ? rewrite_range(range, before) : Status::ok();
}

Status SnapshotSave::write_pieces() {
  for (const auto& [length, ranges] : classes_) {
    pack_->begin_class(length);
    new_pieces_.clear();
    class_digests_.clear();
    for (const Range& range : ranges) DW_RETURN_IF_ERROR(write_range(range, length));
    DW_RETURN_IF_ERROR(pack_->end_class());
  }
  report_.pieces_written = pack_->pieces().size();
  return Status::ok();
}

ManifestPlaces SnapshotSave::places_for_manifest(const std::string& hash, const Digest& pack) const {
  ManifestPlaces places{hash, {}, {}};
  std::map<uint32_t, uint64_t> numbers;  // of packs, in the manifest
  for (const Tensor& tensor : tensors_) {
    PiecePlace next = kNowhere;
    uint64_t run_length = 0;
    for (size_t i = 0; i < tensor.places.size(); ++i) {
      const PiecePlace at = tensor.places[i];
      const uint64_t length = tensor.pieces[i].size();
      const bool goes_on =
          at.pack == kZeros ? next.pack == kZeros && i > 0 : at == next && length == run_length;
      next = at.pack == kZeros ? at : PiecePlace{at.pack, at.offset + padded_bytes(length)};
      run_length = length;
      if (goes_on) {
        ++places.runs.back().pieces;
        continue;
      }
      PieceRun run{1, kZeroPack, 0};
      if (at.pack != kZeros) {
        const auto [number, added] = numbers.emplace(at.pack, places.packs.size());
        if (added) places.packs.push_back(at.pack == kNewPack ? pack : store_->index_.pack_name(at.pack));
        run.pack = number->second;
        run.offset = at.offset;
      }
      places.runs.push_back(run);
    }
  }
  return places;
}

// Everything is on the disk before anything has its name, so that a full disk is met before anything is
// there; then pack and manifest get theirs, then the name. A journal that is asked to write begins at once
// and with all of it, so asking for all files first and flushing then, and the same for folders, makes three
// waits out of six flushes.
Status SnapshotSave::write_files(const std::string& hash, const std::string& name) {
  const StoreFolder& folder = store_->folder_;
  Digest pack_name{};
  if (!pack_->empty()) {
    DW_ASSIGN_OR_RETURN(pack_name, pack_->finish());
    pack_->start_write_back();
  }
  const std::string path = folder.file(StoreFile::kManifest, hash);
  DW_ASSIGN_OR_RETURN(os::AtomicFile manifest,
                      os::AtomicFile::create(folder.snapshots() + kNewFile, os::FileAccess::kPrivate));
  DW_ASSIGN_OR_RETURN(report_.bytes_written, write_manifest(&manifest, path, contents_, digests_,
                                                            places_for_manifest(hash, pack_name)));
  manifest.start_write_back(0, 0);
  std::optional<os::AtomicFile> name_file;
  if (!name.empty()) {
    DW_ASSIGN_OR_RETURN(name_file, folder.new_name(hash));
    name_file->start_write_back(0, 0);
  }
  if (!pack_->empty()) DW_RETURN_IF_ERROR(pack_->flush());
  DW_RETURN_IF_ERROR(manifest.flush());
  if (name_file.has_value()) DW_RETURN_IF_ERROR(name_file->flush());
  if (!pack_->empty()) DW_RETURN_IF_ERROR(place_pack(pack_name));
  DW_ASSIGN_OR_RETURN(const os::FileStamp stamp,
                      manifest.commit_as(path, os::AtomicFile::Durability::kUnflushed));
  if (!pack_->empty()) DW_RETURN_IF_ERROR(os::flush_folder(folder.packs()));
  DW_RETURN_IF_ERROR(os::flush_folder(folder.snapshots()));
  folder.record_stamp(StoreFile::kManifest, hash, stamp);
  return name_file.has_value() ? folder.place_name(&*name_file, name) : Status::ok();
}

Status SnapshotSave::place_pack(const Digest& pack_name) {
  const StoreFolder& folder = store_->folder_;
  const std::string name = to_hex(pack_name);
  DW_ASSIGN_OR_RETURN(const os::FileStamp stamp, pack_->place(folder.file(StoreFile::kPack, name)));
  folder.record_stamp(StoreFile::kPack, name, stamp);
  store_->forget_pack(pack_name);  // one that was there had not been trusted
  store_->index_.add_pack(pack_name, stamp, pack_->pieces());
  report_.bytes_written += pack_->bytes();
  return Status::ok();
}

void SnapshotSave::report_digests() {
  size_t index = 0;
  for (const Section& section : contents_.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      if (tensor.piece_bytes != 0) {
        report_.digests[section.name + "." + tensor.name] = digests_[index].pieces;
      }
      ++index;
    }
  }
}

Result<SaveReport> SnapshotSave::run(const std::string& name) {
  const std::string& path = store_->path();
  DW_RETURN_IF_ERROR(check_storable(contents_, path));
  DW_ASSIGN_OR_RETURN(Header header, describe(contents_, path));
  DW_RETURN_IF_ERROR(store_->refresh_index());
  plan();
  DW_RETURN_IF_ERROR(write_pieces());
  std::vector<DigestJob> whole;
  std::vector<size_t> whole_index;
  size_t index = 0;
  for (const Section& section : contents_.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      if (tensor.piece_bytes == 0) {
        whole.push_back({tensor.chunks});
        whole_index.push_back(index);
      }
      ++index;
    }
  }
  run_digest_jobs(whole, store_->threads_);
  for (size_t i = 0; i < whole.size(); ++i) digests_[whole_index[i]].whole = whole[i].digest;
  set_digests(&header, digests_);
  DW_ASSIGN_OR_RETURN(const EncodedHeader encoded, encode_header(header, path));
  report_.hash = to_hex(encoded.hash);
  if (store_->has_snapshot(report_.hash)) {
    report_.pieces_written = 0;
    if (!name.empty()) DW_RETURN_IF_ERROR(store_->folder_.write_name(name, report_.hash));
  } else {
    DW_RETURN_IF_ERROR(write_files(report_.hash, name));
  }
  report_digests();
  return std::move(report_);
}

Digest FolderStore::zero_digest(uint64_t length) {
  const auto [entry, added] = zero_digests_.emplace(length, Digest{});
  if (added) entry->second = blake3_of_zeros(length);
  return entry->second;
}

bool FolderStore::has_snapshot(const std::string& hash) {
  const auto manifest = Manifest::open(folder_.file(StoreFile::kManifest, hash), hash);
  if (!manifest.is_ok() || !folder_.stamp_matches(StoreFile::kManifest, hash, (*manifest)->stamp()))
    return false;
  return std::all_of((*manifest)->packs().begin(), (*manifest)->packs().end(),
                     [&](const Digest& pack) { return index_.has_pack(pack); });
}

// Only packs that can be taken at their word are used again: bytes that the caller still has are better than
// bytes that may be damaged.
Status FolderStore::refresh_index() {
  DW_ASSIGN_OR_RETURN(const StoreFolder::Listing listing, folder_.list(StoreFile::kPack));
  std::vector<Digest> good;
  for (const std::string& hash : listing.hashes) {
    Digest name;
    DW_CHECK(from_hex(hash, &name), "listed as a hash");
    const Result<os::FileStamp> stamp = os::stamp_of(folder_.file(StoreFile::kPack, hash));
    if (!stamp.is_ok()) continue;
    if (!index_.has_pack(name, *stamp)) {
      const auto pack = open_pack(name);
      if (!pack.is_ok() || !(*pack)->trusted()) continue;
      index_.add_pack(**pack);
      trim_cache();
    }
    good.push_back(name);
  }
  index_.keep_packs(good);
  const std::lock_guard hold(cache_mutex_);
  std::erase_if(snapshots_, [](const auto& entry) {
    return !os::stamp_of(entry.second.snapshot->manifest().path()).is_ok();
  });
  std::sort(good.begin(), good.end());
  std::erase_if(packs_, [&](const auto& entry) {
    return !std::binary_search(good.begin(), good.end(), entry.first) && entry.second.pack.use_count() == 1;
  });
  return Status::ok();
}

Result<SaveReport> FolderStore::save(const SnapshotContents& contents, const std::string& name) {
  DW_RETURN_IF_ERROR(folder_.check_writable());
  if (!name.empty()) DW_RETURN_IF_ERROR(folder_.check_name(name));
  const std::lock_guard turn(save_mutex_);
  DW_ASSIGN_OR_RETURN(const os::FileLock lock, folder_.lock_for_writing(os::FileLock::Kind::kShared));
  return SnapshotSave(this, contents).run(name);
}

}  // namespace driftwood::snapshot
