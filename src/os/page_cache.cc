#include "os/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <climits>

#include "os/memory_map.h"

namespace driftwood::os {

bool is_cached(int fd, uint64_t offset) {
#ifdef RWF_NOWAIT
  char byte = 0;
  const iovec vec{&byte, 1};
  return preadv2(fd, &vec, 1, static_cast<off_t>(offset), RWF_NOWAIT) == 1;
#else
  (void)fd;
  (void)offset;
  return false;
#endif
}

void bring_in_range(int fd, uint64_t offset, uint64_t bytes, const uint8_t* address) {
#ifdef __APPLE__
  radvisory range{static_cast<off_t>(offset), static_cast<int>(std::min<uint64_t>(bytes, INT_MAX))};
  (void)::fcntl(fd, F_RDADVISE, &range);
#else
  (void)::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
#endif
  populate_pages(address, bytes);
}

void give_up_range(int fd, uint64_t offset, uint64_t bytes, const uint8_t* address) {
  (void)::madvise(const_cast<uint8_t*>(address), bytes, MADV_DONTNEED);
#ifndef __APPLE__
  (void)::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
#else
  (void)fd;
  (void)offset;
#endif
}

bool read_directly(int fd) {
#ifdef __APPLE__
  return ::fcntl(fd, F_NOCACHE, 1) == 0;
#else
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
#endif
}

}  // namespace driftwood::os
