// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011). A draw is a pure function of (seed, stream, position, index): no state to save, the same on every
// machine, and a fork re-keys by changing the stream.
#pragma once

#include <array>
#include <cstdint>

namespace driftwood {

// One Philox4x32-10 block.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// 64 random bits for (seed, stream, position, index).
constexpr uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t position, uint32_t index) {
  const uint32_t stream_lo = static_cast<uint32_t>(stream);
  const uint32_t stream_hi = static_cast<uint32_t>(stream >> 32);
  const std::array<uint32_t, 4> out = philox4x32(
      {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32) ^ stream_hi, stream_lo, index},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return (uint64_t{out[1]} << 32) | out[0];
}

// Uniform in [0, 1) with 24 bits: exact in f32.
constexpr float random_uniform(uint64_t seed, uint64_t stream, uint64_t position, uint32_t index) {
  return static_cast<float>(random_u64(seed, stream, position, index) >> 40) * 5.9604644775390625e-08f;
}

}  // namespace driftwood
