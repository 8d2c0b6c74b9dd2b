// Writes a snapshot as one file: docs/formats/snapshot.md.
//
// The file appears under its name whole and durable or not at all (temporary file, flush, rename, flush of
// the folder); on any error an older file of that name stays as it was. Mode 0600. The same contents give the
// same bytes. Cost: one pass of hashing on `threads` threads, then one of writing. Errors: the system's (no
// space, not permitted), naming the file; invalid_argument for names and sizes the format does not allow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "snapshot/identity.h"
#include "snapshot/section.h"

namespace driftwood::snapshot {

struct SnapshotContents {
  Identity identity;
  Origin origin;
  std::vector<Section> sections;
};

struct WrittenSnapshot {
  std::string hash;  // the header's, in hex: names the snapshot, contents included
  uint64_t file_bytes = 0;
};

Result<WrittenSnapshot> write_snapshot(const std::string& path, const SnapshotContents& contents,
                                       int threads = 1);

}  // namespace driftwood::snapshot
