// parallel_for: load-time work over short-lived threads. Units are handed out by a counter, so the order is
// not fixed; only for work whose result does not depend on it (packing moves bytes, it adds nothing up).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace driftwood::weights {

template <typename Function>
void parallel_for(int threads, size_t units, const Function& function) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t unit = next++; unit < units; unit = next++) function(unit);
  };
  std::vector<std::thread> others;
  const size_t wanted = std::min(units, static_cast<size_t>(std::max(threads, 1)));
  for (size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
}

}  // namespace driftwood::weights
