// Address space and what of it is resident, from the operating system.
//
// Thin and stateless: one function per system call that regions need. Sizes are bytes and multiples of
// page_bytes(). Errors name the call, the size and the system's reason. Any thread may call anything here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace driftwood::os {

// The system's page: 4 KiB or 16 KiB. Never a Wasm page.
size_t page_bytes();

// Reserves `bytes` of address space that nobody can touch and that costs no memory.
Result<uint8_t*> reserve_address_space(size_t bytes);
// Makes [address, address + bytes) of a reservation readable and writable; fresh pages read as zero.
Status commit_pages(uint8_t* address, size_t bytes);
// Puts `bytes` of the regular file `fd` from `offset` on at `address`, inside a reservation: readable and
// writable, copy-on-write (the file never changes). The descriptor is not kept. data_loss if the file is
// shorter. The file must stay as it is while it is mapped: cutting it ends the process at the next touch
// (SIGBUS), rewriting it shows through every page that was not written.
Status map_private_file(uint8_t* address, size_t bytes, int fd, uint64_t offset);
// Puts fresh zero pages at `address`, inside a reservation, instead of what was there: readable and writable.
Status map_zero_pages(uint8_t* address, size_t bytes);
// Brings mapped pages of a file in and waits for the disk; advice only, so what can't be brought in stays
// out.
void populate_pages(const uint8_t* address, size_t bytes);
// True if the page at `address` would come without the disk; false too if the system does not tell.
bool is_resident(const uint8_t* address);
// Gives a whole reservation back.
void release_address_space(uint8_t* address, size_t bytes);

// Resident memory of this process.
struct ProcessMemory {
  size_t rss_bytes = 0;
  size_t anonymous_bytes = 0;
};
Result<ProcessMemory> process_memory();

}  // namespace driftwood::os
