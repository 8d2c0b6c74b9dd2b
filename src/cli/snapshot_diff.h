// What differs between two snapshots, part by part; docs/snapshots.md tells the fields of the result.
//
// Cost: tensors in pieces are compared by their pieces' digests, and only pieces that differ are read.
#pragma once

#include "cli/printing.h"
#include "cli/snapshot_source.h"

namespace driftwood::cli {

// Most ranges, globals and blocks that are listed; the rest is counted.
inline constexpr size_t kMostListed = 1000;

// "equal" is about contents: parent, time and notes of the two don't count.
Result<Json> diff_snapshots(const SnapshotView& a, const SnapshotView& b);

// Of one KV tensor, both sides with the same geometry (snapshot_diff_kv.cc).
Result<Json> diff_kv(const SnapshotView& a, const snapshot::StoredSection& section_a, const SnapshotView& b,
                     const snapshot::StoredSection& section_b);

}  // namespace driftwood::cli
