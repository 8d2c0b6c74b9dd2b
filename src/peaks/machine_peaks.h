// What this machine can do at most, measured: the yardstick of the benchmarks.
//
// Each figure is the best of kPasses, the least disturbed one, with all threads at it from the same moment. A
// pass lasts milliseconds, so a machine that others use now and then still shows its peak.
#pragma once

#include "base/status.h"
#include "peaks/loops.h"

namespace driftwood::peaks {

inline constexpr int kPasses = 15;

// The first of built_loops() that this processor can run.
const Loops& best_loops();

// GB/s (1e9) of `threads` threads that each read their part of 256 MB to 4 GB, in huge pages where the system
// gives them. resource_exhausted or the like if there is not that much memory.
Result<double> read_gb_per_s(const Loops& loops, int threads);

// 1e9 multiply-accumulates a second of `threads` threads together, from registers.
double gmac_per_s(const MacLoop& loop, int threads);

}  // namespace driftwood::peaks
