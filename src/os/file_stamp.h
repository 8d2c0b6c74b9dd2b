// FileStamp: what the system says of a file, to tell whether it is still the one that was seen before.
#pragma once

#include <cstdint>

namespace driftwood::os {

struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  uint32_t owner = 0;  // user id
  uint32_t mode = 0;   // permission bits
};

// User id this process acts with.
uint32_t effective_user();

}  // namespace driftwood::os
