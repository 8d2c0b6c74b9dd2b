#include "snapshot/writer.h"

#include "os/atomic_file.h"
#include "snapshot/contents.h"

namespace driftwood::snapshot {

Result<WrittenSnapshot> write_snapshot(const std::string& path, const SnapshotContents& contents,
                                       int threads) {
  DW_ASSIGN_OR_RETURN(Header header, describe(contents, path));
  const std::vector<TensorDigests> digests = hash_contents(contents, threads);
  set_digests(&header, digests);
  DW_ASSIGN_OR_RETURN(const EncodedHeader encoded, encode_header(header, path));
  DW_ASSIGN_OR_RETURN(os::AtomicFile file, os::AtomicFile::create(path, os::FileAccess::kPrivate));
  WrittenSnapshot written{to_hex(encoded.hash), 0};
  DW_ASSIGN_OR_RETURN(written.file_bytes, write_container(&file, encoded, contents, digests));
  DW_RETURN_IF_ERROR(file.commit());
  return written;
}

}  // namespace driftwood::snapshot
