// The system's clocks in nanoseconds.
#pragma once

#include <cstdint>

namespace driftwood::os {

uint64_t realtime_ns();   // since 1970, UTC
uint64_t monotonic_ns();  // never goes back

}  // namespace driftwood::os
