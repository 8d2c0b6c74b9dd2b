#include "peaks/machine_peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/check.h"
#include "os/cpu_features.h"
#include "os/mapped_memory.h"

namespace driftwood::peaks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLeastTime = std::chrono::milliseconds(400);  // outlasts another process's turn on a core
constexpr size_t kLeastBytes = size_t{256} << 20;
constexpr size_t kBytesPerThread = size_t{64} << 20;  // beyond the cache that belongs to a core
constexpr size_t kMostBytes = size_t{4} << 30;        // beyond the caches of the largest machine together
constexpr int64_t kRounds = 1'000'000;                // some milliseconds

// Runs part(i) on every thread; seconds from the first that begins to the last that ends. Starting the
// threads does not count.
template <class Part>
double seconds_together(int threads, Part part) {
  struct Span {
    Clock::time_point from, to;
  };
  std::vector<Span> spans(static_cast<size_t>(threads));
  std::atomic<int> missing{threads};
  const auto run = [&](int i) {
    missing.fetch_sub(1);
    while (missing.load(std::memory_order_relaxed) > 0) os::spin_pause();
    Span& span = spans[static_cast<size_t>(i)];
    span.from = Clock::now();
    part(i);
    span.to = Clock::now();
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(run, i);
    run(0);
  }
  const auto by_from = [](const Span& a, const Span& b) { return a.from < b.from; };
  const auto by_to = [](const Span& a, const Span& b) { return a.to < b.to; };
  const Clock::time_point from = std::min_element(spans.begin(), spans.end(), by_from)->from;
  const Clock::time_point to = std::max_element(spans.begin(), spans.end(), by_to)->to;
  return std::chrono::duration<double>(to - from).count();
}

template <class Part>
double best_seconds_together(int threads, Part part) {
  const Clock::time_point enough = Clock::now() + kLeastTime;
  double best = seconds_together(threads, part);
  for (int pass = 1; pass < kPasses || Clock::now() < enough; ++pass) {
    best = std::min(best, seconds_together(threads, part));
  }
  return best;
}

}  // namespace

const Loops& best_loops() {
  for (const Loops& loops : built_loops()) {
    if (std::all_of(loops.features.begin(), loops.features.end(), os::cpu_has)) return loops;
  }
  return portable_loops();
}

Result<double> read_gb_per_s(const Loops& loops, int threads) {
  const size_t total = std::clamp(kBytesPerThread * static_cast<size_t>(threads), kLeastBytes, kMostBytes);
  const size_t part = total / static_cast<size_t>(threads) / kReadStep * kReadStep;
  DW_ASSIGN_OR_RETURN(const os::MappedMemory memory, os::MappedMemory::allocate(total));
  const auto part_of = [&](int i) { return memory.data() + part * static_cast<size_t>(i); };
  // Each thread writes its own part first: that places the pages near it.
  seconds_together(threads, [&](int i) { std::memset(part_of(i), 1, part); });
  const double seconds = best_seconds_together(threads, [&](int i) {
    const uint64_t sum = loops.read(part_of(i), part);
    DW_CHECK(sum == part / 8 * 0x0101010101010101u, "the reading loop left something out");
  });
  return static_cast<double>(part) * threads / seconds * 1e-9;
}

double gmac_per_s(const MacLoop& loop, int threads) {
  std::atomic<int64_t> sink{0};
  const double seconds = best_seconds_together(threads, [&](int) { sink += loop.run(kRounds); });
  return static_cast<double>(loop.macs_per_round * kRounds) * threads / seconds * 1e-9;
}

}  // namespace driftwood::peaks
