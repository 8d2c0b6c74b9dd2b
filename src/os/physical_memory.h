// How much memory this process may count on.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace driftwood::os {

// Bytes of physical memory, or the limit of the process's control group, or of one around it, if that is
// lower.
Result<int64_t> physical_memory_bytes();

// Bytes that the process could have now without swapping and without anybody's being ended: what is free, and
// what the system would give up for it (pages of files that can be read again; this process's, too). Changes
// all the time. Tens of microseconds; allocates nothing. Linux; elsewhere all of physical_memory_bytes().
Result<int64_t> available_memory_bytes();

}  // namespace driftwood::os
