// Random bytes from the operating system, fit for keys.
#pragma once

#include <cstdint>
#include <span>

namespace driftwood::os {

void random_bytes(std::span<uint8_t> bytes);

}  // namespace driftwood::os
