#include "os/cpu_identity.h"

#include <cstdint>
#include <cstdio>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

namespace driftwood::os {
namespace {

std::string identify() {
  char text[128];
#if defined(__x86_64__) || defined(__i386__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  unsigned features_c = 0, features_d = 0, extended_b = 0, extended_c = 0, extended_d = 0, more_c = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    features_c = c;
    features_d = d;
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    extended_b = b;
    extended_c = c;
    extended_d = d;
  }
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d) != 0) more_c = c;
  std::snprintf(text, sizeof text, "x86_64-%08x-%08x-%08x-%08x-%08x-%08x", features_c, features_d, extended_b,
                extended_c, extended_d, more_c);
#elif defined(__linux__)
  std::snprintf(text, sizeof text, "arm64-%lx-%lx", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#else
  std::snprintf(text, sizeof text, "apple-arm64");
#endif
  return text;
}

}  // namespace

const std::string& cpu_identity() {
  static const std::string identity = identify();
  return identity;
}

}  // namespace driftwood::os
