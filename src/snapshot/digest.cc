#include "snapshot/digest.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "dw_bridge.h"

namespace driftwood::snapshot {
namespace {

int nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Digest blake3(ByteSpan bytes) {
  Digest digest;
  DW_CHECK(dwb_blake3(bytes.data(), bytes.size(), digest.data()) == DWB_OK, "hashing cannot fail");
  return digest;
}

Digest blake3(std::span<const ByteSpan> chunks) {
  if (chunks.size() == 1) return blake3(chunks[0]);
  const std::unique_ptr<dwb_hasher, void (*)(dwb_hasher*)> hasher(dwb_hasher_new(), dwb_hasher_free);
  DW_CHECK(hasher != nullptr, "no hasher");
  for (const ByteSpan chunk : chunks) {
    DW_CHECK(dwb_hasher_update(hasher.get(), chunk.data(), chunk.size()) == DWB_OK, "hashing cannot fail");
  }
  Digest digest;
  DW_CHECK(dwb_hasher_finish(hasher.get(), digest.data()) == DWB_OK, "hashing cannot fail");
  return digest;
}

Digest blake3_of_zeros(uint64_t count) {
  static constexpr uint8_t kZeros[64 << 10] = {};
  std::vector<ByteSpan> chunks;
  for (uint64_t left = count; left > 0; left -= chunks.back().size()) {
    chunks.push_back(ByteSpan(kZeros).first(std::min<uint64_t>(left, sizeof(kZeros))));
  }
  return blake3(chunks);
}

bool is_zero(ByteSpan bytes) {
  if (bytes.empty()) return true;
  return bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

std::string to_hex(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool from_hex(std::string_view text, Digest* digest) {
  if (text.size() != 2 * digest->size()) return false;
  for (size_t i = 0; i < digest->size(); ++i) {
    const int high = nibble(text[2 * i]);
    const int low = nibble(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*digest)[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

void run_digest_jobs(std::span<DigestJob> jobs, int threads) {
  run_on_threads(jobs.size(), threads, [&](size_t i) { jobs[i].digest = blake3(jobs[i].chunks); });
}

void run_on_threads(size_t count, int threads, const std::function<void(size_t)>& job) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::jthread> others;
  const size_t wanted = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  try {
    while (others.size() + 1 < wanted) others.emplace_back(work);
  } catch (const std::system_error&) {
    // The threads there are do the work.
  }
  work();
}

}  // namespace driftwood::snapshot
