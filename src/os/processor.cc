#include "os/processor.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace driftwood::os {

#ifdef __linux__

int current_processor() { return ::sched_getcpu(); }

void leave_processor(int processor) {
  cpu_set_t allowed;
  if (processor < 0 || processor >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(0, sizeof others, &others) != 0) return;
  (void)::sched_setaffinity(0, sizeof allowed, &allowed);
}

#else

int current_processor() { return -1; }
void leave_processor(int) {}

#endif

}  // namespace driftwood::os
