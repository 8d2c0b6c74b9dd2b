// The packed cache on disk: one file for each (model fingerprint, layout version, requests), an image
// (image.h) whose header proves what it was made from. docs/formats/models.md has the layout.
//
// A file that is missing, truncated, damaged in its header, another user's, writable by others, or made from
// other bytes is not an error: the reason comes back and the caller packs anew. Files are 0600 and appear
// whole or not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/mapped_file.h"
#include "weights/image.h"

namespace driftwood::weights {

uint64_t cache_header_bytes(size_t matrices);

// "<cache_dir>/packed/<fingerprint>-<requests>.dwpack".
std::string cache_path(const ImagePlan& plan, const std::string& cache_dir);

// The file mapped, with its descriptor, and checked; or why it cannot be used. `verify` reads all of it.
Result<std::shared_ptr<const os::MappedFile>> open_cache(const ImagePlan& plan, const std::string& path,
                                                         bool verify, int threads);

// Packs straight into a new cache file. What starts that were ended in the middle of this left in the folder
// goes.
Status write_cache(const ImagePlan& plan, const std::string& path, int threads);

}  // namespace driftwood::weights
