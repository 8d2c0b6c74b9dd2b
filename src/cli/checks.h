// Checks of what a flag is given, where CLI11's own let numbers wrap or an empty text count as none.
#pragma once

#include <cstdint>
#include <limits>

#include <CLI/CLI.hpp>

namespace driftwood::cli {

inline constexpr uint64_t kMostInt64 = std::numeric_limits<int64_t>::max();
inline constexpr uint64_t kMostInt32 = std::numeric_limits<int32_t>::max();

// Decimal digits, from `least` to `most`.
CLI::Validator whole_number(uint64_t least = 0, uint64_t most = std::numeric_limits<uint64_t>::max());
CLI::Validator not_empty();
// "4096", "16MB" (a million each), "2 GiB" (1024 cubed each): replaced by the number of bytes, at most
// kMostInt64.
CLI::Validator byte_size();

}  // namespace driftwood::cli
