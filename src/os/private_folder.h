// Files that only this user can have written: a folder that is the user's own and that nobody else may write.
//
// For caches whose contents are trusted (machine code). Everything is checked on open descriptors, not on
// names. Errors say what was found. Thread- and process-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace driftwood::os {

// Reads `path`, which stands in `folder`. permission_denied if the folder or the file belongs to somebody else
// or can be written by others; the file must be regular and is not followed as a link.
Result<std::vector<uint8_t>> read_private_file(const std::string& folder, const std::string& path,
                                               uint64_t max_bytes);

// Makes the folder (0700, parents too) if need be, checks it as above, writes a new file (0600) and renames it
// to `path`. Not synced: for what can be made again.
Status write_private_file(const std::string& folder, const std::string& path, std::span<const uint8_t> head,
                          std::span<const uint8_t> body);

// Removes the files ending in `suffix` that were modified longest ago until the rest fits in `max_bytes`.
void trim_folder(const std::string& folder, const std::string& suffix, uint64_t max_bytes);

}  // namespace driftwood::os
