// What the processor can do and how much of it this process may use.
//
// Features are asked by the names Linux prints in /proc/cpuinfo, without the underscores ("avx2",
// "avx512vnni", "asimddp"). A feature counts only if the system also saves its registers. No state; every
// call asks anew, cheaply.
#pragma once

#include <string_view>

namespace driftwood::os {

// False for a name this file does not know and on processors of another family.
bool cpu_has(std::string_view feature);

// Physical cores this process may run on: those in its affinity mask, hyper-threads counted once, and no more
// than the CPU quota of its control group. At least 1.
int usable_cores();

// Logical processors in the affinity mask. At least 1. More runnable threads than this must not spin for
// long.
int usable_processors();

// A hint to the processor that the caller is in a spin loop.
void spin_pause();

}  // namespace driftwood::os
