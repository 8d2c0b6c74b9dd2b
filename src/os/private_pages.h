// Which pages of a private mapping are this process's own: written since they were mapped.
//
// On a copy-on-write mapping of a file these are the written pages; on an anonymous one the touched ones.
// Pages swapped out count. Needs no privilege and arms nothing. Any thread; the answer is exact while nobody
// writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"

namespace driftwood::os {

// Pages of page_bytes(), counted from the address that was asked about; ascending, never adjacent.
struct PageRun {
  size_t first = 0;
  size_t count = 0;
};

// Asks the kernel for them (Linux 6.7 or later); unimplemented elsewhere. Pages that were only read, and so
// share the system's zero page, do not count.
Result<std::vector<PageRun>> scan_private_pages(const uint8_t* address, size_t bytes);

// Reads them from the page map (Linux); unimplemented elsewhere. Anonymous pages that were only read do
// count: the caller who minds looks whether they are zero.
Result<std::vector<PageRun>> read_private_pages(const uint8_t* address, size_t bytes);

}  // namespace driftwood::os
