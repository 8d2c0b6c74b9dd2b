#include "os/cpu_features.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sched.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#endif

namespace driftwood::os {
namespace {

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

// Which register sets the system saves (XCR0), 0 if it does not say.
unsigned saved_states() {
  if ((cpuid(1).ecx & (1u << 27)) == 0) return 0;  // OSXSAVE
  unsigned low = 0;
  unsigned high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

struct Feature {
  std::string_view name;
  unsigned leaf;
  char reg;  // 'a' (of subleaf 1), 'b' or 'c'
  int bit;
  unsigned states;  // XCR0 bits it needs
};

constexpr unsigned kYmm = 0x6;
constexpr unsigned kZmm = 0xe6;
constexpr Feature kFeatures[] = {
    {"fma", 1, 'c', 12, kYmm},      {"f16c", 1, 'c', 29, kYmm},       {"avx2", 7, 'b', 5, kYmm},
    {"avx512f", 7, 'b', 16, kZmm},  {"avx512dq", 7, 'b', 17, kZmm},   {"avx512bw", 7, 'b', 30, kZmm},
    {"avx512vl", 7, 'b', 31, kZmm}, {"avx512vnni", 7, 'c', 11, kZmm}, {"avxvnni", 7, 'a', 4, kYmm},
};

#elif defined(__aarch64__) && defined(__linux__)

struct Feature {
  std::string_view name;
  unsigned long bit;  // of AT_HWCAP, which names only what the system saves too
};

constexpr Feature kFeatures[] = {{"asimd", HWCAP_ASIMD}, {"asimddp", HWCAP_ASIMDDP}};

#endif

#if defined(__linux__)

long read_number(const std::string& path) {
  std::ifstream file(path);
  long value = -1;
  file >> value;
  return file ? value : -1;
}

// Whole CPUs of a cgroup v2 quota, rounded up; 0 if there is none.
int quota_cpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  int64_t period = 0;
  file >> quota >> period;
  if (!file || quota == "max" || period <= 0) return 0;
  const int64_t value = std::strtoll(quota.c_str(), nullptr, 10);
  return value <= 0 ? 0 : static_cast<int>((value + period - 1) / period);
}

#endif

}  // namespace

bool cpu_has([[maybe_unused]] std::string_view feature) {
#if defined(__x86_64__)
  for (const Feature& f : kFeatures) {
    if (f.name != feature) continue;
    const Registers r = cpuid(f.leaf, f.reg == 'a' ? 1 : 0);
    const unsigned word = f.reg == 'a' ? r.eax : f.reg == 'b' ? r.ebx : r.ecx;
    return ((word >> f.bit) & 1u) != 0 && (saved_states() & f.states) == f.states;
  }
#elif defined(__aarch64__) && defined(__linux__)
  for (const Feature& f : kFeatures) {
    if (f.name == feature) return (getauxval(AT_HWCAP) & f.bit) != 0;
  }
#endif
  return false;
}

int usable_processors() {
#if defined(__linux__)
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) return std::max(1, CPU_COUNT(&mask));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

int usable_cores() {
  int cores = usable_processors();
#if defined(__linux__)
  cpu_set_t mask;
  std::set<std::pair<long, long>> seen;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mask)) continue;
      const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      const long core = read_number(folder + "core_id");
      if (core < 0) {
        seen.clear();
        break;
      }
      seen.insert({read_number(folder + "physical_package_id"), core});
    }
  }
  if (!seen.empty()) cores = static_cast<int>(seen.size());
  if (const int quota = quota_cpus(); quota > 0) cores = std::min(cores, quota);
#endif
  return std::max(1, cores);
}

void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace driftwood::os
