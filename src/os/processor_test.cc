#include "os/processor.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <sched.h>

namespace driftwood::os {
namespace {

TEST(Processor, AThreadLeavesTheOneItIsOnAndMayComeBack) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const int here = current_processor();
  ASSERT_TRUE(CPU_ISSET(here, &before));
  for (int round = 0; round < 20; ++round) {
    leave_processor(here);
    cpu_set_t after;
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }
  leave_processor(-1);
  leave_processor(CPU_SETSIZE);
}

TEST(Processor, OneThatMayUseNoOtherStays) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const int here = current_processor();
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  leave_processor(here);
  EXPECT_EQ(current_processor(), here);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace driftwood::os
#endif
