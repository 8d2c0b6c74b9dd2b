// What is in a snapshot, for people and programs: read from its sections alone, without a model or a module,
// so that it works for whatever was saved, and for what this program could not go on from.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/printing.h"
#include "cli/snapshot_source.h"

namespace driftwood::cli {

// The fields are told in docs/snapshots.md.
Json describe_snapshot(const SnapshotView& view);

// Token ids of a session section; empty if it has none.
std::vector<int32_t> tokens_of(const snapshot::StoredSection& section);

// The text of `ids` by the model with that fingerprint, looked for as `model` (path or name) and among the
// models of this machine. not_found if it is not there.
Result<std::string> text_of_tokens(const std::string& model, const std::string& fingerprint,
                                   std::span<const int32_t> ids);

}  // namespace driftwood::cli
