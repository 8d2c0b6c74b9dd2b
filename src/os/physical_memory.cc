#include "os/physical_memory.h"

#include <unistd.h>

#include <algorithm>

#include "os/control_group.h"
#include "os/small_file.h"

namespace driftwood::os {
namespace {

Result<int64_t> installed_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return unavailable("the system does not tell its physical memory");
  return static_cast<int64_t>(pages) * page;
}

}  // namespace

Result<int64_t> physical_memory_bytes() {
  DW_ASSIGN_OR_RETURN(const int64_t installed, installed_bytes());
  return std::min(installed, group_memory().limit_bytes);
}

Result<int64_t> available_memory_bytes() {
  DW_ASSIGN_OR_RETURN(const int64_t installed, installed_bytes());
  char space[4096];
  const auto kilobytes = number_of(read_small_file("/proc/meminfo", space), "MemAvailable:");
  const int64_t free = kilobytes.has_value() ? *kilobytes * 1024 : installed;
  return std::min(free, group_memory().available_bytes);
}

}  // namespace driftwood::os
