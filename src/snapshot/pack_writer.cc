#include "snapshot/pack_writer.h"

#include <algorithm>
#include <array>

#include "snapshot/container.h"
#include "snapshot/contents.h"
#include "snapshot/pack_file.h"
#include "snapshot/store_folder.h"

namespace driftwood::snapshot {
namespace {

constexpr uint64_t kGatherBytes = 1 << 20;     // one write call
constexpr uint64_t kWriteBackBytes = 8 << 20;  // before the disk is asked to begin

// More than the header's text can need: a class has two tensors, their hashes, and two entries of the
// directory.
uint64_t header_room(size_t classes) { return padded_bytes(8 + 4096 + classes * 2048); }

}  // namespace

PackWriter::PackWriter(std::string folder, size_t max_classes)
    : folder_(std::move(folder)), header_bytes_(header_room(max_classes)), end_(header_bytes_) {
  header_.sections.push_back({{kPackSection, kPackKind, {}}, {}});
}

void PackWriter::begin_class(uint64_t length) {
  length_ = length;
  stride_ = padded_bytes(length);
  digests_.clear();
  padded_.clear();
}

Status PackWriter::open() {
  DW_ASSIGN_OR_RETURN(file_, os::AtomicFile::create(folder_ + kNewFile, os::FileAccess::kPrivate));
  return Status::ok();
}

Result<uint64_t> PackWriter::add(ByteSpan piece, const Digest& digest) {
  DW_CHECK(piece.size() == length_, "a piece of another class");
  if (!file_.has_value()) DW_RETURN_IF_ERROR(open());
  const uint64_t at = end_ + digests_.size() * stride_;
  const bool neighbour = !gathered_.empty() && gathered_.data() + gathered_.size() == piece.data() &&
                         gathered_at_ + gathered_.size() == at && gathered_.size() < kGatherBytes;
  if (!neighbour) {
    DW_RETURN_IF_ERROR(write_gathered());
    gathered_at_ = at;
    gathered_ = piece;
  } else {
    gathered_ = {gathered_.data(), gathered_.size() + piece.size()};
  }
  digests_.push_back(digest);
  if (stride_ != length_) {
    static constexpr std::array<uint8_t, kUnitBytes> kZeros{};
    const ByteSpan chunks[] = {piece, ByteSpan(kZeros).first(stride_ - length_)};
    padded_.push_back(blake3(chunks));
  }
  return at;
}

Status PackWriter::write_gathered() {
  if (gathered_.empty()) return Status::ok();
  const ByteSpan bytes = gathered_;
  gathered_ = {};
  DW_RETURN_IF_ERROR(file_->write_at(gathered_at_, bytes));
  const uint64_t end = gathered_at_ + bytes.size();
  if (end >= written_back_ + kWriteBackBytes) {
    file_->start_write_back(written_back_, end - written_back_);
    written_back_ = end;
  }
  return Status::ok();
}

void PackWriter::rewind(uint64_t count) {
  DW_CHECK(count <= digests_.size(), "rewinding forward");
  gathered_ = {};
  digests_.resize(count);
  if (stride_ != length_) padded_.resize(count);
  written_back_ = std::min(written_back_, end_ + count * stride_);
}

Status PackWriter::append_table(const std::vector<Digest>& digests) {
  const ByteSpan bytes = digest_bytes(digests);
  DW_RETURN_IF_ERROR(file_->write_at(end_, bytes));
  end_ += padded_bytes(bytes.size());
  return Status::ok();
}

Status PackWriter::end_class() {
  if (digests_.empty()) return Status::ok();
  DW_RETURN_IF_ERROR(write_gathered());
  for (size_t i = 0; i < digests_.size(); ++i) pieces_.push_back({digests_[i], length_, end_ + i * stride_});
  end_ += digests_.size() * stride_;
  const auto rows = static_cast<int64_t>(digests_.size());
  const std::vector<Digest>& hashes = stride_ == length_ ? digests_ : padded_;
  DW_RETURN_IF_ERROR(append_table(hashes));
  std::vector<DirectoryTensor>& tensors = header_.sections[0].tensors;
  const std::string length = std::to_string(length_);
  tensors.push_back(
      {{kPackPieces + length, DType::kU8, {rows, static_cast<int64_t>(stride_)}, "[piece][byte]", stride_},
       blake3(digest_bytes(hashes))});
  if (stride_ != length_) {
    DW_RETURN_IF_ERROR(append_table(digests_));
    tensors.push_back({{kPackDigests + length, DType::kU8, {rows, 32}, "[piece][digest]", 0},
                       blake3(digest_bytes(digests_))});
  }
  digests_.clear();
  padded_.clear();
  return Status::ok();
}

Result<Digest> PackWriter::finish() {
  DW_ASSIGN_OR_RETURN(const EncodedHeader encoded, encode_header(header_, folder_ + kNewFile, header_bytes_));
  DW_CHECK(encoded.bytes.size() == header_bytes_, "the header outgrew its room");
  DW_RETURN_IF_ERROR(file_->write_at(0, encoded.bytes));
  DW_RETURN_IF_ERROR(file_->set_size(end_));
  return encoded.hash;
}

}  // namespace driftwood::snapshot
