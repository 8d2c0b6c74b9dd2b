// What a writer does with contents before a byte is on the disk: describe them, cut them, hash them; and how
// it puts them into a file. Shared by portable files and by the store.
//
// Preconditions: what section.h says of chunks. Plain functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/atomic_file.h"
#include "snapshot/header.h"
#include "snapshot/reader.h"
#include "snapshot/writer.h"

namespace driftwood::snapshot {

// The header without digests. invalid_argument as check_header(); `place` begins the message.
Result<Header> describe(const SnapshotContents& contents, const std::string& place);

// All chunks of a tensor with piece_bytes cut into pieces, in order.
std::vector<ByteSpan> cut(const SectionTensor& tensor);

// What was read as contents to be written again, without known digests; borrows the bytes. A tensor without
// bytes gets no chunk.
SnapshotContents stored_contents(const Identity& identity, const Origin& origin,
                                 const std::vector<StoredSection>& sections);

// Of one tensor: the whole one's digest, or, with piece_bytes, one a piece.
struct TensorDigests {
  Digest whole{};
  std::vector<Digest> pieces;
};

// The bytes of a `.hashes` tensor; borrows.
ByteSpan digest_bytes(const std::vector<Digest>& digests);

// Of every tensor, in order; `known` ones are not computed.
std::vector<TensorDigests> hash_contents(const SnapshotContents& contents, int threads);

// Puts the digests where the header wants them. `digests`: of every tensor, in order.
void set_digests(Header* header, const std::vector<TensorDigests>& digests);

// Header, tensors, hashes, padding. `digests` and `header` as above, the header with its digests. Returns the
// bytes written.
Result<uint64_t> write_container(os::AtomicFile* file, const EncodedHeader& header,
                                 const SnapshotContents& contents, const std::vector<TensorDigests>& digests);

}  // namespace driftwood::snapshot
