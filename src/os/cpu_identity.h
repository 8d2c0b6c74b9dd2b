// What compiled code depends on: the processor's architecture and instruction set extensions, as a short text.
#pragma once

#include <string>

namespace driftwood::os {

// Stable on one machine; differs where code compiled for one processor might not run on the other.
const std::string& cpu_identity();

}  // namespace driftwood::os
