#include "engine/allocation_counter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace driftwood::engine::testing {

int64_t allocation_count() { return allocations.load(); }

namespace {

TEST(AllocationCounter, SeesAnAllocation) {
  const int64_t before = allocation_count();
  void* const memory = ::operator new(16);
  EXPECT_EQ(allocation_count() - before, 1);
  ::operator delete(memory);
}

}  // namespace
}  // namespace driftwood::engine::testing
