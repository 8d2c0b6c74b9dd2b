#include "os/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace driftwood::os {
namespace {

#if defined(__aarch64__)
constexpr const char* kFeatureLine = "Features";
#else
constexpr const char* kFeatureLine = "flags";
#endif

TEST(CpuFeatures, CountsAreSane) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_GE(usable_processors(), usable_cores());
}

TEST(CpuFeatures, AgreeWithTheKernel) {
  EXPECT_FALSE(cpu_has("no_such_feature"));
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && line.rfind(kFeatureLine, 0) != 0) {
  }
  if (!file) GTEST_SKIP() << "/proc/cpuinfo has no line '" << kFeatureLine << "'";
  const std::string flags = line + " ";
  auto listed = [&](const std::string& name) { return flags.find(" " + name + " ") != std::string::npos; };
  for (const char* name :
       {"fma", "f16c", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl", "asimd", "asimddp"}) {
    EXPECT_EQ(cpu_has(name), listed(name)) << name;
  }
  EXPECT_EQ(cpu_has("avx512vnni"), listed("avx512_vnni"));
  EXPECT_EQ(cpu_has("avxvnni"), listed("avx_vnni"));
}

}  // namespace
}  // namespace driftwood::os
