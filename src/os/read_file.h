// Reading a whole file that must not be larger than its reader can bear.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace driftwood::os {

// Errors name the file: not_found, permission_denied, invalid_argument (a folder or device), resource_exhausted
// (larger than max_bytes), unavailable (the read itself failed).
Result<std::vector<uint8_t>> read_whole_file(const std::string& path, uint64_t max_bytes);

}  // namespace driftwood::os
