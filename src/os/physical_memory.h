// How much memory this process may count on.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace driftwood::os {

// Bytes of physical memory, or the limit of the control group if that is lower.
Result<int64_t> physical_memory_bytes();

}  // namespace driftwood::os
