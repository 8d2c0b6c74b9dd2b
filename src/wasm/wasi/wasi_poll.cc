// poll_oneoff: waiting for a clock. Files and the standard streams are always ready.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "wasm/wasi/wasi_functions.h"

namespace driftwood::wasm::wasi {
namespace {

constexpr uint32_t kMaxSubscriptions = 1024;
constexpr uint8_t kClock = 0, kFdRead = 1, kFdWrite = 2;
constexpr uint16_t kAbsoluteTime = 1;

struct Subscription {
  uint64_t userdata = 0;
  uint8_t kind = 0;
  uint32_t id = 0;  // clock or descriptor
  uint64_t timeout_ns = 0;
  uint16_t flags = 0;
};

// Layout: userdata u64 @0, tag u8 @8, then clock {id u32 @16, timeout u64 @24, precision u64 @32, flags u16 @40}
// or descriptor u32 @16.
Subscription parse(const uint8_t* at) {
  Subscription s;
  std::memcpy(&s.userdata, at, 8);
  s.kind = at[8];
  std::memcpy(&s.id, at + 16, 4);
  std::memcpy(&s.timeout_ns, at + 24, 8);
  std::memcpy(&s.flags, at + 40, 2);
  return s;
}

// Layout: userdata u64 @0, error u16 @8, type u8 @10, {bytes u64 @16, flags u16 @24}.
void put_event(uint8_t* at, const Subscription& s, Errno error) {
  std::memset(at, 0, kEventBytes);
  std::memcpy(at, &s.userdata, 8);
  const auto code = static_cast<uint16_t>(error);
  std::memcpy(at + 8, &code, 2);
  at[10] = s.kind;
}

// What the subscription reports at once, or nothing if it has to wait. `wait_ns` is then how long.
std::optional<Errno> ready(WasiCall& call, const Subscription& s, uint64_t* wait_ns) {
  if (s.kind == kFdRead || s.kind == kFdWrite) {
    const WasiDescriptor* fd = call.state().find(s.id);
    if (fd == nullptr) return Errno::kBadf;
    return (fd->rights & rights::kPollFdReadwrite) != 0 ? Errno::kSuccess : Errno::kNotcapable;
  }
  if (s.kind != kClock || s.id > kClockThreadCpu) return Errno::kInval;
  *wait_ns = s.timeout_ns;
  if ((s.flags & kAbsoluteTime) != 0) {
    const uint64_t now = call.state().clock_ns(s.id);
    *wait_ns = s.timeout_ns > now ? s.timeout_ns - now : 0;
  }
  if (*wait_ns == 0) return Errno::kSuccess;
  return std::nullopt;
}

// Sleeps in steps of the ticker's period; false if the guest has to end before.
bool sleep_ns(WasiCall& call, uint64_t wait_ns) {
  using std::chrono::nanoseconds;
  const auto step = nanoseconds(call.host().poll_period());
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    if (call.host().end_if_due()) return false;
    const auto slept = static_cast<uint64_t>(nanoseconds(std::chrono::steady_clock::now() - begin).count());
    if (slept >= wait_ns) return true;
    std::this_thread::sleep_for(nanoseconds(std::min<uint64_t>(wait_ns - slept, static_cast<uint64_t>(step.count()))));
  }
}

}  // namespace

Errno poll_oneoff(WasiCall& call, const uint64_t* a) {
  const uint32_t count = u32(a[2]);
  if (count == 0 || count > kMaxSubscriptions) return Errno::kInval;
  const uint8_t* in = call.range(u32(a[0]), uint64_t{count} * kSubscriptionBytes);
  uint8_t* out = call.range(u32(a[1]), uint64_t{count} * kEventBytes);
  if (in == nullptr || out == nullptr || call.range(u32(a[3]), 4) == nullptr) return Errno::kFault;
  std::vector<Subscription> subscriptions;
  for (uint32_t i = 0; i < count; ++i) subscriptions.push_back(parse(in + uint64_t{i} * kSubscriptionBytes));
  uint32_t events = 0;
  uint64_t shortest_ns = UINT64_MAX;
  std::vector<uint64_t> waits(count, UINT64_MAX);
  for (uint32_t i = 0; i < count; ++i) {
    const std::optional<Errno> now = ready(call, subscriptions[i], &waits[i]);
    if (now) {
      put_event(out + uint64_t{events++} * kEventBytes, subscriptions[i], *now);
    } else {
      shortest_ns = std::min(shortest_ns, waits[i]);
    }
  }
  if (events == 0) {
    if (!sleep_ns(call, shortest_ns)) return Errno::kIntr;
    for (uint32_t i = 0; i < count; ++i) {
      if (waits[i] == shortest_ns) put_event(out + uint64_t{events++} * kEventBytes, subscriptions[i], Errno::kSuccess);
    }
  }
  call.store<uint32_t>(u32(a[3]), events);
  return Errno::kSuccess;
}

}  // namespace driftwood::wasm::wasi
