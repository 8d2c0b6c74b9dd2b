#include "snapshot/manifest.h"

#include <charconv>
#include <optional>

#include "snapshot/container.h"
#include "snapshot/contents.h"
#include "snapshot/store_damage.h"

namespace driftwood::snapshot {
namespace {

// Takes the text up to the next space, or all of it, off the front.
std::string_view take_word(std::string_view* text) {
  const size_t space = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, space);
  text->remove_prefix(std::min(space + 1, text->size()));
  return word;
}

bool read_number(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && std::to_string(*value) == text;
}

bool read_dtype(std::string_view text, DType* dtype) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    *dtype = static_cast<DType>(i);
    if (dtype_name(*dtype) == text) return true;
  }
  return false;
}

bool read_shape(std::string_view text, std::vector<int64_t>* shape) {
  if (text == "-") return true;  // no dimensions
  for (;;) {
    const size_t comma = std::min(text.find(','), text.size());
    uint64_t value = 0;
    if (!read_number(text.substr(0, comma), &value) || value > uint64_t{INT64_MAX}) return false;
    shape->push_back(static_cast<int64_t>(value));
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
  }
}

bool is_digest_table(const StoredTensor& t) {
  return t.dtype == DType::kU8 && t.piece_bytes == 0 && t.shape.size() == 2 && t.shape[1] == 32;
}

}  // namespace

Result<std::shared_ptr<const Manifest>> Manifest::open(const std::string& path, const std::string& hash) {
  DW_ASSIGN_OR_RETURN(std::shared_ptr<const os::MappedFile> file, os::MappedFile::open(path, {false, false}));
  std::shared_ptr<Manifest> manifest(new Manifest(path));
  DW_RETURN_IF_ERROR(as_damage(manifest->read(file->bytes(), hash)));
  manifest->file_ = std::move(file);
  return std::shared_ptr<const Manifest>(std::move(manifest));
}

Result<std::shared_ptr<const Manifest>> Manifest::parse(ByteSpan bytes, const std::string& path,
                                                        const std::string& hash) {
  std::shared_ptr<Manifest> manifest(new Manifest(path));
  DW_RETURN_IF_ERROR(manifest->read(bytes, hash));
  return std::shared_ptr<const Manifest>(std::move(manifest));
}

Status Manifest::read(ByteSpan bytes, const std::string& hash) {
  DW_ASSIGN_OR_RETURN(container_, Snapshot::parse(bytes, path_));
  if (container_->sections().empty() || container_->sections().back().name != kStoreSection) {
    return invalid_argument(path_ + ": is a snapshot file, but not one of a store (it can be imported)");
  }
  const StoredSection& store = container_->sections().back();
  DW_RETURN_IF_ERROR(read_store_section(store));
  if (!hash.empty() && hash_ != hash) {
    return data_loss(path_ + ": is not the snapshot that its name tells, but " + hash_);
  }
  DW_RETURN_IF_ERROR(restore_sections(store));
  DW_RETURN_IF_ERROR(check_header(portable_header(), path_));
  return assign_runs();
}

Status Manifest::read_store_section(const StoredSection& store) {
  const auto format = store.attributes.find("store");
  if (format == store.attributes.end())
    return invalid_argument(path_ + ": section '.store': has no \"store\"");
  if (format->second != kStoreFormat) {
    return failed_precondition(path_ + ": is of store format " + format->second.substr(0, 20) +
                               ", this program reads format " + std::string(kStoreFormat));
  }
  Digest digest;
  const auto snapshot = store.attributes.find("snapshot");
  if (snapshot == store.attributes.end() || !from_hex(snapshot->second, &digest)) {
    return invalid_argument(path_ + ": section '.store': \"snapshot\" must be 64 hex digits");
  }
  hash_ = snapshot->second;
  const StoredTensor* packs = store.find("packs");
  const StoredTensor* runs = store.find("runs");
  if (packs == nullptr || runs == nullptr || store.tensors.size() != 2 || !is_digest_table(*packs) ||
      runs->dtype != DType::kU64 || runs->piece_bytes != 0 || runs->shape.size() != 2 ||
      runs->shape[1] != 3) {
    return invalid_argument(path_ + ": section '.store': must hold packs, U8 [n, 32], and runs, U64 [n, 3]");
  }
  static_assert(sizeof(PieceRun) == 3 * sizeof(uint64_t) && sizeof(Digest) == 32);
  packs_ = {reinterpret_cast<const Digest*>(packs->bytes.data()), packs->bytes.size() / sizeof(Digest)};
  runs_ = {reinterpret_cast<const PieceRun*>(runs->bytes.data()), runs->bytes.size() / sizeof(PieceRun)};
  return Status::ok();
}

// A digest table becomes the tensor that it stands for.
Status Manifest::restore_tensor(const std::string& description, StoredTensor* tensor) const {
  const std::string place = path_ + ": tensor '" + tensor->full_name + "'";
  if (!is_digest_table(*tensor)) return invalid_argument(place + ": its digests must be U8 [pieces, 32]");
  std::string_view text = description;
  const ByteSpan digests = tensor->bytes;
  tensor->shape.clear();
  const bool good = read_dtype(take_word(&text), &tensor->dtype) &&
                    read_number(take_word(&text), &tensor->piece_bytes) && tensor->piece_bytes != 0 &&
                    read_shape(take_word(&text), &tensor->shape);
  const std::optional<uint64_t> bytes = tensor_bytes(tensor->dtype, tensor->shape);
  if (!good || !bytes.has_value()) {
    return invalid_argument(place + ": what '.store' says of it is not DTYPE PIECE_BYTES SHAPE LAYOUT");
  }
  tensor->layout = text;
  if (piece_count(*bytes, tensor->piece_bytes) != digests.size() / sizeof(Digest)) {
    return invalid_argument(place + ": has digests of " + std::to_string(digests.size() / sizeof(Digest)) +
                            " pieces, its shape has " +
                            std::to_string(piece_count(*bytes, tensor->piece_bytes)));
  }
  tensor->piece_hashes = digests;
  tensor->piece_hashes_offset = tensor->file_offset;
  tensor->bytes = {};
  tensor->file_offset = 0;
  tensor->extent_bytes = 0;
  return Status::ok();
}

Status Manifest::restore_sections(const StoredSection& store) {
  sections_.assign(container_->sections().begin(), container_->sections().end() - 1);
  size_t restored = 2;  // "store" and "snapshot"
  for (StoredSection& section : sections_) {
    for (StoredTensor& tensor : section.tensors) {
      const auto description = store.attributes.find(tensor.full_name);
      if (description == store.attributes.end()) {
        if (tensor.piece_bytes == 0) continue;
        return invalid_argument(path_ + ": tensor '" + tensor.full_name + "': its pieces are in no pack");
      }
      DW_RETURN_IF_ERROR(restore_tensor(description->second, &tensor));
      ++restored;
    }
  }
  if (restored == store.attributes.size()) return Status::ok();
  return invalid_argument(path_ + ": section '.store' describes a tensor that is not there");
}

Status Manifest::assign_runs() {
  size_t next = 0;
  for (const StoredSection& section : sections_) {
    for (const StoredTensor& tensor : section.tensors) {
      if (tensor.piece_bytes == 0) continue;
      const size_t first = next;
      uint64_t left = tensor.piece_hashes.size() / sizeof(Digest);
      const Digest* digests = reinterpret_cast<const Digest*>(tensor.piece_hashes.data());
      const std::span<const Digest> all(digests, left);
      for (; left > 0; ++next) {
        const std::string place = path_ + ": tensor '" + tensor.full_name + "': run " + std::to_string(next);
        if (next == runs_.size()) return invalid_argument(place + ": is missing");
        const PieceRun& run = runs_[next];
        if (run.pieces == 0 || run.pieces > left) {
          return invalid_argument(place + ": has " + std::to_string(run.pieces) + " pieces, 1 to " +
                                  std::to_string(left) + " are left");
        }
        if (run.pack != kZeroPack && (run.pack >= packs_.size() || run.offset % kUnitBytes != 0)) {
          return invalid_argument(place + ": no pack " + std::to_string(run.pack) + " or no such place (" +
                                  std::to_string(run.offset) + ")");
        }
        left -= run.pieces;
      }
      placed_.push_back(
          {&tensor, *tensor_bytes(tensor.dtype, tensor.shape), all, runs_.subspan(first, next - first)});
    }
  }
  if (next == runs_.size()) return Status::ok();
  return invalid_argument(path_ + ": section '.store': has more runs than its tensors need");
}

uint64_t Manifest::bytes_total() const {
  uint64_t total = 0;
  for (const StoredSection& section : sections_) {
    for (const StoredTensor& tensor : section.tensors) total += *tensor_bytes(tensor.dtype, tensor.shape);
  }
  return total;
}

Header Manifest::portable_header() const {
  Header header{identity(), origin(), {}};
  for (const StoredSection& section : sections_) {
    DirectorySection entry;
    static_cast<SectionDescription&>(entry) = section;
    entry.tensors.assign(section.tensors.begin(), section.tensors.end());
    header.sections.push_back(std::move(entry));
  }
  return header;
}

Status Manifest::verify(int threads) const {
  DW_RETURN_IF_ERROR(container_->verify_contents(threads));
  return check_hash();
}

Status Manifest::check_hash() const {
  DW_ASSIGN_OR_RETURN(const EncodedHeader encoded, encode_header(portable_header(), path_));
  if (to_hex(encoded.hash) == hash_) return Status::ok();
  return data_loss(path_ + ": damaged: its contents are of snapshot " + to_hex(encoded.hash) +
                   ", it should be " + hash_);
}

SnapshotContents Manifest::contents() const { return stored_contents(identity(), origin(), sections_); }

std::vector<TensorDigests> Manifest::digests() const {
  std::vector<TensorDigests> digests;
  auto next = placed_.begin();
  for (const StoredSection& section : sections_) {
    for (const StoredTensor& tensor : section.tensors) {
      TensorDigests of{tensor.digest, {}};
      if (tensor.piece_bytes != 0) {
        of.pieces.assign(next->digests.begin(), next->digests.end());
        ++next;
      }
      digests.push_back(std::move(of));
    }
  }
  return digests;
}

}  // namespace driftwood::snapshot
