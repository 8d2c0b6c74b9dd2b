// machine_peaks: what this machine can do at most, as JSON. bench/peers/README.md says what the figures mean.
//
//   machine_peaks [THREADS ...]
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "os/cpu_features.h"
#include "peaks/machine_peaks.h"
#include "peaks/thread_counts.h"

namespace driftwood::peaks {
namespace {

constexpr char kHelp[] =
    "Usage: machine_peaks [THREADS ...]\n\n"
    "What this machine can do at most, as JSON: bytes read a second, and int8 and f32 multiply-accumulates "
    "a\n"
    "second, for each number of threads: by default 1 and all cores this process may use. About two seconds "
    "each.\n";

int fail(const Status& status, int code) {
  std::fprintf(stderr, "machine_peaks: %s\n", status.message().c_str());
  return code;
}

// What was printed may still be on its way: a full disk shows only here.
Status finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Status::ok();
  return unavailable(std::string("cannot write the output: ") + std::strerror(errno));
}

int print_help() {
  std::fputs(kHelp, stdout);
  const Status status = finish_output();
  return status.is_ok() ? 0 : fail(status, 1);
}

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
  return finish_output();
}

}  // namespace
}  // namespace driftwood::peaks

int main(int argc, char** argv) {
  using namespace driftwood;
  const std::span<const char* const> arguments(argv + 1, argv + std::max(argc, 1));
  for (const char* argument : arguments) {
    if (std::strcmp(argument, "--help") == 0 || std::strcmp(argument, "-h") == 0) return peaks::print_help();
  }
  const auto threads = peaks::thread_counts(arguments, os::usable_cores(), os::usable_processors());
  if (!threads.is_ok()) return peaks::fail(threads.status(), 64);
  const Status status = peaks::print_peaks(*threads);
  return status.is_ok() ? 0 : peaks::fail(status, 1);
}
