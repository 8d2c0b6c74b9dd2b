// What snapshot_actor_bench.cc and snapshot_cycle_test.cc measure with: medians and spread as lines of JSON,
// memory, mappings and descriptors of this process, the page cache.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

namespace driftwood::actor {

using Clock = std::chrono::steady_clock;
inline double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Processor time of all threads of this process: what a busy machine does not stretch.
inline double processor_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// One line: {"figure":"...","tokens":4096,"unit":"ms","median":...,"low":...,"high":...,"n":...}. low and
// high: the quartiles.
inline void print_figure(const std::string& name, int64_t tokens, const char* unit,
                         std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const auto at = [&](size_t i) { return n == 0 ? 0.0 : values[std::min(i, n - 1)]; };
  std::printf(
      "{\"figure\":\"%s\",\"tokens\":%lld,\"unit\":\"%s\",\"median\":%.4f,\"low\":%.4f,\"high\":%.4f,\"n\":%"
      "zu}\n",
      name.c_str(), static_cast<long long>(tokens), unit, at(n / 2), at(n / 4), at(n * 3 / 4), n);
  std::fflush(stdout);
}

inline size_t count_lines(const char* path) {
  std::ifstream file(path);
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}
inline size_t count_mappings() { return count_lines("/proc/self/maps"); }
inline size_t count_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<size_t>(std::distance(std::filesystem::begin(entries), std::filesystem::end(entries)));
}

// The value in KiB of a line of /proc/self/smaps_rollup ("Rss:", "Pss_Anon:") or /proc/self/status.
inline uint64_t proc_kib(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10);
  }
  return 0;
}

// Out of the page cache with every file below the folder; what somebody still maps stays.
inline void drop_page_cache(const std::string& folder) {
  ::sync();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

}  // namespace driftwood::actor
