// The memory limits of the Linux control groups that this process is in (version 1 and 2).
#pragma once

#include <cstdint>
#include <string_view>

namespace driftwood::os {

// Of the tightest group from the process's own to the root; INT64_MAX where none limits or the system does
// not tell.
struct GroupMemory {
  int64_t limit_bytes = INT64_MAX;
  // The limit less what the group holds and cannot give up (pages of files it can).
  int64_t available_bytes = INT64_MAX;
};

// Reads /proc and /sys below `root`; allocates nothing. Any thread.
GroupMemory group_memory(std::string_view root = {});

}  // namespace driftwood::os
