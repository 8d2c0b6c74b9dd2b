#include "actor/draws.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/rng.h"

namespace driftwood::actor {
namespace {

// Keeps a guest's random numbers apart from the samplers', which use the small streams.
constexpr uint64_t kGuestStream = 0x6775657374000000u;

template <typename Clock>
uint64_t now_ns() {
  const auto since = Clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace

uint64_t host_monotonic_ns() { return now_ns<std::chrono::steady_clock>(); }

Draws::Draws(const DrawState& state)
    : state_(state), monotonic_base_(host_monotonic_ns() - state.last_monotonic_ns) {}

uint64_t Draws::clock_ns(uint32_t clock) {
  ++state_.clock_reads;
  const bool real = clock == 0;
  const uint64_t reading = real ? now_ns<std::chrono::system_clock>() : host_monotonic_ns() - monotonic_base_;
  uint64_t& last = real ? state_.last_realtime_ns : state_.last_monotonic_ns;
  last = std::max(last, reading);
  return last;
}

void Draws::random(std::span<uint8_t> out) {
  for (size_t done = 0; done < out.size(); done += 8) {
    const uint64_t word = random_u64(state_.seed, kGuestStream, state_.random_words++, 0);
    uint8_t bytes[8];  // little endian on every machine
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(word >> (8 * i));
    std::memcpy(out.data() + done, bytes, std::min<size_t>(8, out.size() - done));
  }
}

}  // namespace driftwood::actor
