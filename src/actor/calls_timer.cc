// Host calls for timers: dw_on_timer(tag) after a delay.
#include <limits>

#include "actor/guest_call.h"

namespace driftwood::actor {
namespace {

int64_t timer_set(GuestCall& call) {
  const int64_t delay_ns = call.i64(0);
  if (delay_ns < 0) return call.fail(invalid_argument("delay_ns is negative"));
  const uint64_t due_ns = host_monotonic_ns() + static_cast<uint64_t>(delay_ns);
  return call.result(call.actor().timers.set(call.i64(1), due_ns));
}

int64_t timer_cancel(GuestCall& call) {
  if (call.actor().timers.cancel(call.i64(0))) return 0;
  return call.fail(not_found("no timer with tag " + std::to_string(call.i64(0)) + " is set"));
}

constexpr HostCall kCalls[] = {
    {"timer", "timer_set", "i64 delay_ns, i64 tag", "i32", DW_HOST_CALL(timer_set)},
    {"timer", "timer_cancel", "i64 tag", "i32", DW_HOST_CALL(timer_cancel)},
};

}  // namespace

std::span<const HostCall> timer_calls() { return kCalls; }

}  // namespace driftwood::actor
