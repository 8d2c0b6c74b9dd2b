#include "os/private_pages.h"

#include "os/memory_map.h"

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "os/descriptor.h"
#include "os/os_error.h"
#endif

namespace driftwood::os {

#ifdef __linux__

namespace {

// The kernel's interface (Documentation/admin-guide/mm/pagemap.rst), which older system headers lack.
struct ScanRegion {
  uint64_t start;
  uint64_t end;
  uint64_t categories;
};
struct ScanArguments {
  uint64_t size;
  uint64_t flags;
  uint64_t start;
  uint64_t end;
  uint64_t walk_end;
  uint64_t regions;
  uint64_t region_count;
  uint64_t max_pages;
  uint64_t category_inverted;
  uint64_t category_mask;
  uint64_t category_anyof_mask;
  uint64_t return_mask;
};
constexpr unsigned long kScanRequest = _IOWR('f', 16, ScanArguments);
constexpr uint64_t kIsFile = 1u << 2;
constexpr uint64_t kIsPresent = 1u << 3;
constexpr uint64_t kIsSwapped = 1u << 4;
constexpr uint64_t kIsZeroPage = 1u << 5;
// More per call has returned stale positions.
constexpr size_t kMaxScanRegions = 512;

constexpr uint64_t kEntryFile = uint64_t{1} << 61;
constexpr uint64_t kEntrySwapped = uint64_t{1} << 62;
constexpr uint64_t kEntryPresent = uint64_t{1} << 63;
constexpr size_t kEntriesPerRead = 4096;

void append(std::vector<PageRun>* runs, size_t first, size_t count) {
  if (!runs->empty() && runs->back().first + runs->back().count == first) {
    runs->back().count += count;
  } else {
    runs->push_back(PageRun{first, count});
  }
}

Result<Descriptor> open_page_map() {
  Descriptor file(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    return unimplemented("this system does not show its page map: /proc/self/pagemap: " +
                         std::string(strerror(errno)));
  }
  return file;
}

}  // namespace

Result<std::vector<PageRun>> scan_private_pages(const uint8_t* address, size_t bytes) {
  std::vector<PageRun> runs;
  if (bytes == 0) return runs;
  DW_ASSIGN_OR_RETURN(const Descriptor file, open_page_map());
  const uint64_t begin = reinterpret_cast<uintptr_t>(address);
  std::vector<ScanRegion> found(kMaxScanRegions);
  ScanArguments scan{};
  scan.size = sizeof scan;
  scan.start = begin;
  scan.end = begin + bytes;
  scan.regions = reinterpret_cast<uintptr_t>(found.data());
  scan.region_count = found.size();
  scan.category_inverted = kIsFile | kIsZeroPage;
  scan.category_mask = kIsFile | kIsZeroPage;
  scan.category_anyof_mask = kIsPresent | kIsSwapped;
  scan.return_mask = kIsPresent;
  while (scan.start < scan.end) {
    const int count = ::ioctl(file.get(), kScanRequest, &scan);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == ENOTTY || errno == EINVAL || errno == EPERM)) {
      return unimplemented("this system cannot scan its page map (Linux 6.7 can): " +
                           std::string(strerror(errno)));
    }
    if (count < 0) return errno_status(errno, "scanning /proc/self/pagemap");
    for (int i = 0; i < count; ++i) {
      append(&runs, (found[i].start - begin) / page_bytes(), (found[i].end - found[i].start) / page_bytes());
    }
    if (scan.walk_end <= scan.start) return internal_error("scanning /proc/self/pagemap does not get on");
    scan.start = scan.walk_end;
  }
  return runs;
}

Result<std::vector<PageRun>> read_private_pages(const uint8_t* address, size_t bytes) {
  std::vector<PageRun> runs;
  DW_ASSIGN_OR_RETURN(const Descriptor file, open_page_map());
  const size_t pages = bytes / page_bytes();
  const size_t first = reinterpret_cast<uintptr_t>(address) / page_bytes();
  std::vector<uint64_t> entries(std::min(pages, kEntriesPerRead));
  for (size_t page = 0; page < pages;) {
    const size_t wanted = std::min(pages - page, entries.size()) * sizeof(uint64_t);
    const off_t offset = static_cast<off_t>((first + page) * sizeof(uint64_t));
    const ssize_t got = ::pread(file.get(), entries.data(), wanted, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, "reading /proc/self/pagemap");
    const size_t count = static_cast<size_t>(got) / sizeof(uint64_t);
    if (count == 0) return internal_error("/proc/self/pagemap ends within this process's memory");
    for (size_t i = 0; i < count; ++i) {
      const bool there = (entries[i] & (kEntryPresent | kEntrySwapped)) != 0;
      if (there && (entries[i] & kEntryFile) == 0) append(&runs, page + i, 1);
    }
    page += count;
  }
  return runs;
}

#else

Result<std::vector<PageRun>> scan_private_pages(const uint8_t*, size_t) {
  return unimplemented("this system has no page map to scan");
}
Result<std::vector<PageRun>> read_private_pages(const uint8_t*, size_t) {
  return unimplemented("this system has no page map to read");
}

#endif

}  // namespace driftwood::os
