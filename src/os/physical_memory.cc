#include "os/physical_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace driftwood::os {
namespace {

// The first number of a file, or nothing ("max" stands for no limit).
bool read_number(const char* path, int64_t* value) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  long long number = 0;
  const bool found = std::fscanf(file, "%lld", &number) == 1 && number > 0;
  std::fclose(file);
  if (found) *value = number;
  return found;
}

}  // namespace

Result<int64_t> physical_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return unavailable("the system does not tell its physical memory");
  int64_t bytes = static_cast<int64_t>(pages) * page;
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t limit = 0;
    if (read_number(path, &limit)) bytes = std::min(bytes, limit);
  }
  return bytes;
}

}  // namespace driftwood::os
