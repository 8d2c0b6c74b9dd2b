// DW_CHECK: our own bugs abort, with the place and the reason, in every build type.
#pragma once

namespace driftwood {

[[noreturn]] void check_failed(const char* file, int line, const char* expression, const char* message);

}  // namespace driftwood

#define DW_CHECK(condition, message)                                                     \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::driftwood::check_failed(__FILE__, __LINE__, #condition, message);                \
  } while (0)
