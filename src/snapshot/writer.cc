#include "snapshot/writer.h"

#include <algorithm>
#include <array>

#include "os/atomic_file.h"
#include "snapshot/container.h"
#include "snapshot/header.h"

namespace driftwood::snapshot {
namespace {

uint64_t chunk_bytes(const SectionTensor& tensor) {
  uint64_t bytes = 0;
  for (const ByteSpan chunk : tensor.chunks) bytes += chunk.size();
  return bytes;
}

Header describe(const SnapshotContents& contents) {
  Header header{contents.identity, contents.origin, {}};
  for (const Section& section : contents.sections) {
    DirectorySection entry;
    static_cast<SectionDescription&>(entry) = section;
    for (const SectionTensor& tensor : section.tensors) {
      DirectoryTensor description;
      static_cast<TensorDescription&>(description) = tensor;
      entry.tensors.push_back(std::move(description));
    }
    header.sections.push_back(std::move(entry));
  }
  return header;
}

// All chunks cut into pieces, in order.
std::vector<ByteSpan> cut(const SectionTensor& tensor) {
  std::vector<ByteSpan> pieces;
  for (size_t i = 0; i < tensor.chunks.size(); ++i) {
    ByteSpan chunk = tensor.chunks[i];
    DW_CHECK(chunk.size() % tensor.piece_bytes == 0 || i + 1 == tensor.chunks.size(),
             "only the last chunk may end inside a piece");
    while (!chunk.empty()) {
      const size_t size = std::min<size_t>(chunk.size(), tensor.piece_bytes);
      pieces.push_back(chunk.first(size));
      chunk = chunk.subspan(size);
    }
  }
  return pieces;
}

// Digests of everything, and the bytes of the hash tensors.
class Hashes {
 public:
  Hashes(const SnapshotContents& contents, int threads) {
    for (const Section& section : contents.sections) {
      for (const SectionTensor& tensor : section.tensors) {
        if (tensor.piece_bytes != 0) pieces_.push_back(cut(tensor));
      }
    }
    auto pieces = pieces_.begin();
    for (const Section& section : contents.sections) {
      for (const SectionTensor& tensor : section.tensors) {
        first_job_.push_back(jobs_.size());
        if (tensor.piece_bytes == 0) {
          jobs_.push_back({tensor.chunks});
          continue;
        }
        for (const ByteSpan& piece : *pieces) jobs_.push_back({{&piece, 1}});
        ++pieces;
      }
    }
    first_job_.push_back(jobs_.size());
    run_digest_jobs(jobs_, threads);
  }

  // Of the tensor-th tensor of all sections.
  const Digest& whole(size_t tensor) const { return jobs_[first_job_[tensor]].digest; }
  std::vector<uint8_t> of_pieces(size_t tensor) const {
    std::vector<uint8_t> bytes;
    for (size_t i = first_job_[tensor]; i < first_job_[tensor + 1]; ++i) {
      bytes.insert(bytes.end(), jobs_[i].digest.begin(), jobs_[i].digest.end());
    }
    return bytes;
  }

 private:
  std::vector<std::vector<ByteSpan>> pieces_;
  std::vector<DigestJob> jobs_;
  std::vector<size_t> first_job_;  // one more than there are tensors
};

Status write_zeros_to_unit(os::AtomicFile* file, uint64_t bytes) {
  static constexpr std::array<uint8_t, kUnitBytes> kZeros{};
  return file->write(ByteSpan(kZeros).first(padded_bytes(bytes) - bytes));
}

Status write_data(os::AtomicFile* file, const SnapshotContents& contents, const Hashes& hashes) {
  size_t index = 0;
  for (const Section& section : contents.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      for (const ByteSpan chunk : tensor.chunks) DW_RETURN_IF_ERROR(file->write(chunk));
      DW_RETURN_IF_ERROR(write_zeros_to_unit(file, chunk_bytes(tensor)));
      if (tensor.piece_bytes != 0) {
        const std::vector<uint8_t> bytes = hashes.of_pieces(index);
        DW_RETURN_IF_ERROR(file->write(bytes));
        DW_RETURN_IF_ERROR(write_zeros_to_unit(file, bytes.size()));
      }
      ++index;
    }
  }
  return Status::ok();
}

}  // namespace

Result<WrittenSnapshot> write_snapshot(const std::string& path, const SnapshotContents& contents,
                                       int threads) {
  Header header = describe(contents);
  DW_RETURN_IF_ERROR(check_header(header, path));
  for (const Section& section : contents.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      DW_CHECK(chunk_bytes(tensor) == *tensor_bytes(tensor.dtype, tensor.shape),
               "chunks are not the shape's bytes");
    }
  }
  const Hashes hashes(contents, threads);
  size_t index = 0;
  for (DirectorySection& section : header.sections) {
    for (DirectoryTensor& tensor : section.tensors) {
      tensor.digest = tensor.piece_bytes == 0 ? hashes.whole(index) : blake3(hashes.of_pieces(index));
      ++index;
    }
  }
  DW_ASSIGN_OR_RETURN(const EncodedHeader encoded, encode_header(header, path));
  DW_ASSIGN_OR_RETURN(os::AtomicFile file, os::AtomicFile::create(path, os::FileAccess::kPrivate));
  DW_RETURN_IF_ERROR(file.write(encoded.bytes));
  DW_RETURN_IF_ERROR(write_data(&file, contents, hashes));
  DW_RETURN_IF_ERROR(file.commit());
  WrittenSnapshot written{to_hex(encoded.hash), encoded.bytes.size()};
  for (const Placement& p : place_tensors(header)) written.file_bytes += p.extent_bytes;
  return written;
}

}  // namespace driftwood::snapshot
