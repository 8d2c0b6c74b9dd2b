#include "os/page_cache.h"

#include <sys/uio.h>

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

}  // namespace driftwood::os
