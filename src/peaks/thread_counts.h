// The numbers of threads that machine_peaks is asked for.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"

namespace driftwood::peaks {

// Each argument once, in the order given; without any, one thread and all `cores`. Refused is what is no
// number, and more threads than `processors`: they would take turns, and a pass wait for the last one.
Result<std::vector<int>> thread_counts(std::span<const char* const> arguments, int cores, int processors);

}  // namespace driftwood::peaks
