#include "snapshot/contents.h"

#include <algorithm>
#include <array>

#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

constexpr Digest kUnknown{};

uint64_t chunk_bytes(const SectionTensor& tensor) {
  uint64_t bytes = 0;
  for (const ByteSpan chunk : tensor.chunks) bytes += chunk.size();
  return bytes;
}

// Writes one tensor and the zeros up to the unit; adds what it wrote to `total`.
Status write_padded(os::AtomicFile* file, const std::vector<ByteSpan>& chunks, uint64_t* total) {
  static constexpr std::array<uint8_t, kUnitBytes> kZeros{};
  uint64_t bytes = 0;
  for (const ByteSpan chunk : chunks) {
    DW_RETURN_IF_ERROR(file->write(chunk));
    bytes += chunk.size();
  }
  *total += padded_bytes(bytes);
  return file->write(ByteSpan(kZeros).first(padded_bytes(bytes) - bytes));
}

}  // namespace

Result<Header> describe(const SnapshotContents& contents, const std::string& place) {
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
  DW_RETURN_IF_ERROR(check_header(header, place));
  for (const Section& section : contents.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      const uint64_t bytes = *tensor_bytes(tensor.dtype, tensor.shape);
      DW_CHECK(chunk_bytes(tensor) == bytes, "chunks are not the shape's bytes");
      DW_CHECK(tensor.known.empty() ||
                   (tensor.piece_bytes != 0 && tensor.known.size() == piece_count(bytes, tensor.piece_bytes)),
               "known digests are one a piece");
    }
  }
  return header;
}

SnapshotContents stored_contents(const Identity& identity, const Origin& origin,
                                 const std::vector<StoredSection>& sections) {
  SnapshotContents contents{identity, origin, {}};
  for (const StoredSection& section : sections) {
    Section entry;
    static_cast<SectionDescription&>(entry) = section;
    for (const StoredTensor& tensor : section.tensors) {
      SectionTensor t;
      static_cast<TensorDescription&>(t) = tensor;
      if (!tensor.bytes.empty()) t.chunks = {tensor.bytes};
      entry.tensors.push_back(std::move(t));
    }
    contents.sections.push_back(std::move(entry));
  }
  return contents;
}

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

ByteSpan digest_bytes(const std::vector<Digest>& digests) {
  return {reinterpret_cast<const uint8_t*>(digests.data()), digests.size() * sizeof(Digest)};
}

std::vector<TensorDigests> hash_contents(const SnapshotContents& contents, int threads) {
  std::vector<TensorDigests> digests;
  std::vector<std::vector<ByteSpan>> pieces;  // of every tensor; inputs of the jobs
  for (const Section& section : contents.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      TensorDigests of;
      pieces.push_back(tensor.piece_bytes == 0 ? std::vector<ByteSpan>() : cut(tensor));
      of.pieces.resize(pieces.back().size());
      if (!tensor.known.empty()) of.pieces = tensor.known;
      digests.push_back(std::move(of));
    }
  }
  std::vector<DigestJob> jobs;
  std::vector<Digest*> results;
  size_t index = 0;
  for (const Section& section : contents.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      if (tensor.piece_bytes == 0) {
        jobs.push_back({tensor.chunks});
        results.push_back(&digests[index].whole);
      }
      for (size_t i = 0; i < pieces[index].size(); ++i) {
        if (digests[index].pieces[i] != kUnknown) continue;
        jobs.push_back({{&pieces[index][i], 1}});
        results.push_back(&digests[index].pieces[i]);
      }
      ++index;
    }
  }
  run_digest_jobs(jobs, threads);
  for (size_t i = 0; i < jobs.size(); ++i) *results[i] = jobs[i].digest;
  return digests;
}

void set_digests(Header* header, const std::vector<TensorDigests>& digests) {
  size_t index = 0;
  for (DirectorySection& section : header->sections) {
    for (DirectoryTensor& tensor : section.tensors) {
      const TensorDigests& of = digests[index++];
      tensor.digest = tensor.piece_bytes == 0 ? of.whole : blake3(digest_bytes(of.pieces));
    }
  }
}

Result<uint64_t> write_container(os::AtomicFile* file, const EncodedHeader& header,
                                 const SnapshotContents& contents,
                                 const std::vector<TensorDigests>& digests) {
  uint64_t total = header.bytes.size();
  DW_RETURN_IF_ERROR(file->write(header.bytes));
  size_t index = 0;
  for (const Section& section : contents.sections) {
    for (const SectionTensor& tensor : section.tensors) {
      const TensorDigests& of = digests[index++];
      DW_RETURN_IF_ERROR(write_padded(file, tensor.chunks, &total));
      if (tensor.piece_bytes == 0) continue;
      DW_RETURN_IF_ERROR(write_padded(file, {digest_bytes(of.pieces)}, &total));
    }
  }
  return total;
}

}  // namespace driftwood::snapshot
