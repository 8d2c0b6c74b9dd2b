#include "os/clock.h"

#include <time.h>

namespace driftwood::os {
namespace {

uint64_t read_clock(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

uint64_t realtime_ns() { return read_clock(CLOCK_REALTIME); }
uint64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }

}  // namespace driftwood::os
