// What a guest has drawn from outside its own state: random bytes and clock readings, ours and WASI's alike.
//
// Random is a pure function of (seed, words drawn so far); the clocks are real but never run backwards, and
// the monotonic one starts at 0 with the actor. DrawState is all there is to save. Used by the actor's thread
// only.
#pragma once

#include <cstdint>
#include <span>

namespace driftwood::actor {

struct DrawState {
  uint64_t seed = 0;
  uint64_t random_words = 0;  // 64-bit words drawn
  uint64_t clock_reads = 0;
  uint64_t last_realtime_ns = 0;  // last value given
  uint64_t last_monotonic_ns = 0;
};

class Draws {
 public:
  // Goes on from `state`: a new actor's is {seed}.
  explicit Draws(const DrawState& state);
  // Clock 0 is real time since 1970; any other is monotonic.
  uint64_t clock_ns(uint32_t clock);
  // A request of n bytes uses ceil(n / 8) words.
  void random(std::span<uint8_t> out);
  const DrawState& state() const { return state_; }

 private:
  DrawState state_;
  uint64_t monotonic_base_;  // host reading that stands for 0
};

// The host's own monotonic clock, which timers are set against.
uint64_t host_monotonic_ns();

}  // namespace driftwood::actor
