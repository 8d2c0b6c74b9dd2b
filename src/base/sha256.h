// SHA-256 (FIPS 180-4): content identity where the bridge's BLAKE3 is out of reach (model fingerprints,
// packed cache headers). Streaming; no allocation. Uses the processor's SHA instructions where it has them,
// same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace driftwood {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  void update(std::span<const uint8_t> bytes);
  void update(std::string_view text);
  // A 64-bit number, little-endian; used to frame fields so that two field lists never give the same bytes.
  void update_u64(uint64_t value);
  // A length-prefixed field.
  void update_field(std::string_view text);
  // Ends the message; the object may not be used afterwards.
  Sha256Digest finish();

 private:
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_;
  uint64_t total_bytes_ = 0;
};

Sha256Digest sha256(std::span<const uint8_t> bytes);
std::string hex(std::span<const uint8_t> bytes);

// One compression function over `blocks` blocks of 64 bytes; exposed so that a test can compare the portable
// one with the one in use.
using Sha256Compress = void (*)(uint32_t state[8], const uint8_t* data, size_t blocks);
void sha256_compress_portable(uint32_t state[8], const uint8_t* data, size_t blocks);
Sha256Compress sha256_compress_in_use();

}  // namespace driftwood
