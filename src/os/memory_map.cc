#include "os/memory_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __APPLE__
#include <mach/mach.h>
#endif

#include <string>

#include "os/os_error.h"

namespace driftwood::os {
namespace {

Status map_error(const char* what, size_t bytes, int error) {
  std::string message = std::string(what) + " of " + std::to_string(bytes) + " bytes: " + strerror(error);
  if (error == ENOMEM) {
    return resource_exhausted(message +
                              " (out of memory, of address space or of mappings: see vm.max_map_count)");
  }
  return internal_error(std::move(message));
}

}  // namespace

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

Result<uint8_t*> reserve_address_space(size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  void* address = mmap(nullptr, bytes, PROT_NONE, flags, -1, 0);
  if (address == MAP_FAILED) return map_error("reserving address space", bytes, errno);
  return static_cast<uint8_t*>(address);
}

Status commit_pages(uint8_t* address, size_t bytes) {
  if (bytes == 0) return Status::ok();
  if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0)
    return map_error("committing memory", bytes, errno);
  return Status::ok();
}

Status map_private_file(uint8_t* address, size_t bytes, int fd, uint64_t offset) {
  if (bytes == 0) return Status::ok();
  struct stat info;
  if (fstat(fd, &info) != 0) return errno_status(errno, "image file, descriptor " + std::to_string(fd));
  if (!S_ISREG(info.st_mode)) return invalid_argument("image file: only a regular file can be mapped");
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (offset > size || bytes > size - offset) {
    return data_loss("image file has " + std::to_string(size) + " bytes, the image needs " +
                     std::to_string(bytes) + " from offset " + std::to_string(offset));
  }
  int flags = MAP_PRIVATE | MAP_FIXED;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  if (mmap(address, bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset)) != MAP_FAILED) {
    return Status::ok();
  }
  if (errno == ENOMEM) return map_error("mapping an image file", bytes, errno);
  return errno_status(errno, "mapping an image file");
}

Status map_zero_pages(uint8_t* address, size_t bytes) {
  if (bytes == 0) return Status::ok();
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  if (mmap(address, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED) return Status::ok();
  return map_error("mapping zero pages", bytes, errno);
}

void populate_pages(const uint8_t* address, size_t bytes) {
  auto* const begin = const_cast<uint8_t*>(address);
#ifdef MADV_POPULATE_READ
  if (madvise(begin, bytes, MADV_POPULATE_READ) == 0 || errno != EINVAL) return;  // EINVAL: Linux before 5.14
#endif
  (void)madvise(begin, bytes, MADV_WILLNEED);
}

bool is_resident(const uint8_t* address) {
#ifdef __APPLE__
  char state = 0;
#else
  unsigned char state = 0;
#endif
  return mincore(const_cast<uint8_t*>(address), page_bytes(), &state) == 0 && (state & 1) != 0;
}

void release_address_space(uint8_t* address, size_t bytes) {
  if (address == nullptr) return;
  const int result = munmap(address, bytes);
  DW_CHECK(result == 0, "munmap of a region failed: it was not ours or was cut");
}

#ifdef __APPLE__

Result<ProcessMemory> process_memory() {
  task_vm_info_data_t info;
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  if (task_info(mach_task_self(), TASK_VM_INFO, reinterpret_cast<task_info_t>(&info), &count) !=
      KERN_SUCCESS) {
    return unavailable("task_info(TASK_VM_INFO) failed");
  }
  return ProcessMemory{static_cast<size_t>(info.resident_size), static_cast<size_t>(info.internal)};
}

#else

namespace {

// The value in KiB of the line "Key:   123 kB", or -1.
long long rollup_kib(FILE* file, const char* key) {
  char line[256];
  const size_t length = strlen(key);
  rewind(file);
  while (fgets(line, sizeof line, file) != nullptr) {
    long long kib = 0;
    if (strncmp(line, key, length) == 0 && sscanf(line + length, " %lld", &kib) == 1) return kib;
  }
  return -1;
}

}  // namespace

Result<ProcessMemory> process_memory() {
  FILE* statm = fopen("/proc/self/statm", "re");
  if (statm == nullptr) return unavailable(std::string("/proc/self/statm: ") + strerror(errno));
  unsigned long long total = 0;
  unsigned long long resident = 0;
  const int fields = fscanf(statm, "%llu %llu", &total, &resident);
  fclose(statm);
  if (fields != 2) return unavailable("/proc/self/statm: not in the form expected");
  ProcessMemory memory;
  memory.rss_bytes = static_cast<size_t>(resident) * page_bytes();
  FILE* rollup = fopen("/proc/self/smaps_rollup", "re");
  if (rollup == nullptr) return unavailable(std::string("/proc/self/smaps_rollup: ") + strerror(errno));
  const long long anonymous = rollup_kib(rollup, "Anonymous:");
  const long long exact_rss = rollup_kib(rollup, "Rss:");
  fclose(rollup);
  if (anonymous < 0 || exact_rss < 0) return unavailable("/proc/self/smaps_rollup: lacks Rss or Anonymous");
  // statm lags behind by a few pages per thread; the rollup walks the tables.
  memory.rss_bytes = static_cast<size_t>(exact_rss) * 1024;
  memory.anonymous_bytes = static_cast<size_t>(anonymous) * 1024;
  return memory;
}

#endif

}  // namespace driftwood::os
