#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace driftwood {

void check_failed(const char* file, int line, const char* expression, const char* message) {
  std::fprintf(stderr, "driftwood: internal error at %s:%d: %s: %s\n", file, line, expression, message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace driftwood
