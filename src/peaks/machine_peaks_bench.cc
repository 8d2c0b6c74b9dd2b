// machine_peaks: what this machine can do at most, as JSON. bench/peers/README.md says what the figures mean.
//
//   machine_peaks [THREADS ...]      by default 1 and all cores this process may use
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "os/cpu_features.h"
#include "peaks/machine_peaks.h"

namespace driftwood::peaks {
namespace {

constexpr int kMostThreads = 1024;

// {"1": 20.9, "2": 34.8}
template <class Figure>
std::string by_threads(const std::vector<int>& threads, Figure figure) {
  std::string text = "{";
  for (const int count : threads) {
    char item[64];
    std::snprintf(item, sizeof(item), "%s\"%d\": %.1f", text.size() > 1 ? ", " : "", count, figure(count));
    text += item;
  }
  return text + "}";
}

void print_macs(const char* name, const MacLoop& loop, const std::vector<int>& threads) {
  const std::string figures = by_threads(threads, [&](int count) { return gmac_per_s(loop, count); });
  std::printf(",\n  \"%s\": {\"instructions\": \"%s\", \"gmac_per_s\": %s}", name, loop.instructions,
              figures.c_str());
}

Status print_peaks(const std::vector<int>& threads) {
  const Loops& loops = best_loops();
  std::vector<double> read;
  for (const int count : threads) {
    DW_ASSIGN_OR_RETURN(const double figure, read_gb_per_s(loops, count));
    read.push_back(figure);
  }
  auto next = read.begin();
  std::printf("{\n  \"loops\": \"%s\",\n  \"read_gb_per_s\": %s", loops.name,
              by_threads(threads, [&](int) { return *next++; }).c_str());
  print_macs("int8", loops.int8, threads);
  print_macs("f32", loops.f32, threads);
  std::printf("\n}\n");
  return Status::ok();
}

}  // namespace
}  // namespace driftwood::peaks

int main(int argc, char** argv) {
  using namespace driftwood;
  std::vector<int> threads;
  for (int i = 1; i < argc; ++i) {
    int count = 0;
    const char* end = argv[i] + std::strlen(argv[i]);
    const auto [rest, error] = std::from_chars(argv[i], end, count);
    if (error != std::errc() || rest != end || count < 1 || count > peaks::kMostThreads) {
      std::fprintf(stderr, "machine_peaks: '%s' is no number of threads (1 to %d)\n", argv[i],
                   peaks::kMostThreads);
      return 64;
    }
    threads.push_back(count);
  }
  if (threads.empty()) {
    threads.push_back(1);
    if (os::usable_cores() > 1) threads.push_back(os::usable_cores());
  }
  const Status status = peaks::print_peaks(threads);
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "machine_peaks: %s\n", status.message().c_str());
  return 1;
}
