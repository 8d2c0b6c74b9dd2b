// Counts the allocations of the engine's test program (allocation_counter_test.cc replaces operator new).
#pragma once

#include <cstdint>

namespace driftwood::engine::testing {

int64_t allocation_count();

}  // namespace driftwood::engine::testing
