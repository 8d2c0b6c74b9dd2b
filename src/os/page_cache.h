// What of a file the system has in memory.
#pragma once

#include <cstdint>

namespace driftwood::os {

// True if the byte at `offset` can be read without the disk; false too if the system does not tell or the
// file has no such byte. About half a microsecond. Any thread.
bool is_cached(int fd, uint64_t offset);

}  // namespace driftwood::os
