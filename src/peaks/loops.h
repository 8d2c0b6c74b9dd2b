// Loops that do one thing as fast as a thread of this processor can: read memory, multiply and accumulate.
//
// They compute something, so that a test can tell whether they did all the work they claim: `read` sums what
// it reads, the others multiply ones by ones and return the sum of their accumulators, which is then the
// number of multiply-accumulates (until int16 or f32 accumulators run full, which costs no time).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace driftwood::peaks {

inline constexpr size_t kReadStep = 256;    // bytes of a turn of `read`
inline constexpr size_t kReadAhead = 2048;  // how far ahead it asks the memory

struct MacLoop {
  const char* instructions;
  int64_t macs_per_round;
  int64_t (*run)(int64_t rounds);
};

struct Loops {
  const char* name;
  std::span<const char* const> features;  // the processor must have (names of os/cpu_features.h)
  // Sum of 64-bit words. `from` is aligned to 64 bytes, `bytes` a multiple of kReadStep.
  uint64_t (*read)(const uint8_t* from, size_t bytes);
  MacLoop int8;  // the instructions that a matmul of int8 activations is made of
  MacLoop f32;
};

// What this build holds, best first; the last one runs on every processor.
std::span<const Loops> built_loops();

const Loops& portable_loops();

}  // namespace driftwood::peaks
