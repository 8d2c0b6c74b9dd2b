// A regular file without a name, which goes with its last descriptor and mapping.
//
// It lies in memory where the system has such files (Linux), else it is an unlinked file of the temporary
// folder. Errors: the system's, naming the call. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "os/descriptor.h"

namespace driftwood::os {

// `bytes` of zeros that take no room until they are written.
Result<Descriptor> create_anonymous_file(uint64_t bytes);
// All of `from` at `offset`.
Status write_all_at(int fd, std::span<const uint8_t> from, uint64_t offset);
// From now on neither size nor contents can change, where the system can promise that.
Status seal_file(int fd);

}  // namespace driftwood::os
