// Overflow-checked products for sizes that a file claims.
#pragma once

#include <cstdint>
#include <vector>

namespace driftwood::format {

// False if a * b does not fit in an int64 (both must be >= 0).
inline bool multiply(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }

// Product of a shape (1 for none). False on overflow or a negative dimension.
inline bool shape_elements(const std::vector<int64_t>& shape, int64_t* out) {
  *out = 1;
  for (const int64_t d : shape) {
    if (d < 0 || !multiply(*out, d, out)) return false;
  }
  return true;
}

}  // namespace driftwood::format
