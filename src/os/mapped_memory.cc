#include "os/mapped_memory.h"

#include <cerrno>

#include <sys/mman.h>

#include "os/os_error.h"

namespace driftwood::os {

Result<MappedMemory> MappedMemory::allocate(size_t size_bytes) {
  DW_CHECK(size_bytes > 0, "allocating nothing");
  void* base =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return errno_status(errno, "allocating " + std::to_string(size_bytes) + " bytes");
#ifdef MADV_HUGEPAGE
  (void)::madvise(base, size_bytes, MADV_HUGEPAGE);  // advice: failure costs speed only
#endif
  return MappedMemory(static_cast<uint8_t*>(base), size_bytes);
}

MappedMemory::~MappedMemory() {
  if (base_ != nullptr) ::munmap(base_, size_);
}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  if (this != &other) {
    if (base_ != nullptr) ::munmap(base_, size_);
    base_ = std::exchange(other.base_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Status MappedMemory::make_read_only() {
  if (::mprotect(base_, size_, PROT_READ) != 0) return errno_status(errno, "protecting packed weights");
  return Status::ok();
}

}  // namespace driftwood::os
