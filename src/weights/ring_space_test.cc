#include "weights/ring_space.h"

#include <cstdint>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace driftwood::weights {
namespace {

TEST(RingSpace, TurnsOver) {
  RingSpace ring(10);
  EXPECT_EQ(ring.take(4), 0u);
  EXPECT_EQ(ring.take(4), 4u);
  EXPECT_FALSE(ring.take(4).has_value());
  ring.give_back();
  EXPECT_EQ(ring.take(4), 0u);
  EXPECT_FALSE(ring.take(1).has_value());  // two are free, but not for the next in order
  ring.give_back();
  ring.give_back();
  EXPECT_EQ(ring.take(10), 0u);
  EXPECT_FALSE(ring.take(1).has_value());
}

TEST(RingSpace, MoreThanThereIs) {
  RingSpace ring(10);
  EXPECT_FALSE(ring.take(11).has_value());
  EXPECT_EQ(ring.take(10), 0u);
}

// Half of the ring is always to be had once the older places are back.
TEST(RingSpace, PlacesNeverOverlap) {
  constexpr size_t kCapacity = 100;
  RingSpace ring(kCapacity);
  struct Place {
    size_t begin, end;
  };
  std::deque<Place> taken;
  for (uint64_t i = 0; i < 20000; ++i) {
    const size_t bytes = 1 + random_u64(7, 0, i, 0) % (kCapacity / 2);
    const auto begin = ring.take(bytes);
    if (!begin.has_value()) {
      ASSERT_FALSE(taken.empty());
      taken.pop_front();
      ring.give_back();
      continue;
    }
    ASSERT_LE(*begin + bytes, kCapacity);
    for (const Place& p : taken) ASSERT_TRUE(*begin + bytes <= p.begin || p.end <= *begin);
    taken.push_back({*begin, *begin + bytes});
  }
}

}  // namespace
}  // namespace driftwood::weights
