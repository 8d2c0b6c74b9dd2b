// Runs the AVX2 kernels on fixed work, one case after the other, each inside measured_kernel(). Meant to run
// under callgrind (count_instructions.py). Prints what it was compiled by, then a line a case: name, unit,
// amount, least.
//
//   kernel_workload [case...]     all cases if none is named
#include <cstdio>
#include <set>
#include <string>

#include "os/cpu_features.h"
#include "tests/instructions/workload.h"

// The function callgrind looks for by name. The barrier keeps the call from becoming a jump.
extern "C" [[gnu::noinline]] void measured_kernel(const std::function<void()>& run) {
  run();
  asm volatile("" ::: "memory");
}

namespace driftwood::instructions {
namespace {

constexpr int kSkipped = 77;

#if defined(__clang__)
constexpr const char* kCompiler = "Clang";
constexpr int kCompilerMajor = __clang_major__;
#else
constexpr const char* kCompiler = "GNU";
constexpr int kCompilerMajor = __GNUC__;
#endif

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (auto& some : {quantised_cases(), dense_cases(), attention_cases(), row_cases()}) {
    cases.insert(cases.end(), some.begin(), some.end());
  }
  return cases;
}

int run_cases(std::set<std::string> wanted) {
  for (const char* feature : {"avx2", "fma", "f16c"}) {
    if (os::cpu_has(feature)) continue;
    std::fprintf(stderr, "kernel_workload: this processor has no %s\n", feature);
    return kSkipped;
  }
  std::printf("compiler %s %d\n", kCompiler, kCompilerMajor);
  const bool all = wanted.empty();
  for (const Case& one : all_cases()) {
    if (!all && wanted.erase(one.name) == 0) continue;
    const Work work = one.prepare();
    measured_kernel(work.run);
    std::printf("case %s %s %lld %.6g\n", one.name.c_str(), work.unit, static_cast<long long>(work.amount),
                work.least);
  }
  for (const std::string& name : wanted) std::fprintf(stderr, "kernel_workload: no case %s\n", name.c_str());
  return wanted.empty() ? 0 : 2;
}

}  // namespace
}  // namespace driftwood::instructions

int main(int argc, char** argv) { return driftwood::instructions::run_cases({argv + 1, argv + argc}); }
