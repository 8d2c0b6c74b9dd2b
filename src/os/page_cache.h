// What of a file the system has in memory, and what it should have.
#pragma once

#include <cstdint>

namespace driftwood::os {

// True if the byte at `offset` can be read without the disk; false too if the system does not tell or the
// file has no such byte. About half a microsecond. Any thread.
bool is_cached(int fd, uint64_t offset);

// Advice, which costs only time when the system does not follow it; any thread.
//
// Reads a range of a file that lies at `address` in this process in, and waits for it.
void bring_in_range(int fd, uint64_t offset, uint64_t bytes, const uint8_t* address);
// Gives up a range of a file that lies at `address` in this process: a later read comes from the disk again.
// Pages that another process maps stay. macOS takes it as a hint about this process alone.
void give_up_range(int fd, uint64_t offset, uint64_t bytes, const uint8_t* address);

// Lets reads of this descriptor go from the disk straight into the caller's memory, leaving nothing in the
// cache. Offsets, sizes and addresses must then be multiples of kDirectAlignment. False if the file system
// does not do that.
bool read_directly(int fd);
inline constexpr uint64_t kDirectAlignment = 4096;

}  // namespace driftwood::os
