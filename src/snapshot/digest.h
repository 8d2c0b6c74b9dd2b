// BLAKE3 digests: of bytes, of bytes in several places, and of many at once on several threads.
//
// Pieces of 16 KiB and more run at full speed. Plain functions, any thread; inputs are borrowed for the call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

struct dwb_hasher;

namespace driftwood::snapshot {

using Digest = std::array<uint8_t, 32>;
using ByteSpan = std::span<const uint8_t>;

Digest blake3(ByteSpan bytes);
// Of the concatenation.
Digest blake3(std::span<const ByteSpan> chunks);
Digest blake3_of_zeros(uint64_t count);

bool is_zero(ByteSpan bytes);  // all of them

// 64 lower-case hex digits; parsing accepts nothing else.
std::string to_hex(const Digest& digest);
bool from_hex(std::string_view text, Digest* digest);

struct DigestJob {
  std::span<const ByteSpan> chunks;
  Digest digest{};  // set by run_digest_jobs
};

void run_digest_jobs(std::span<DigestJob> jobs, int threads);

// job(0) to job(count - 1), in any order, on at most `threads` threads, the caller's among them. Fewer if the
// system gives no more.
void run_on_threads(size_t count, int threads, const std::function<void(size_t)>& job);

}  // namespace driftwood::snapshot
