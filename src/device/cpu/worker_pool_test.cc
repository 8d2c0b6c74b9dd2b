#include "device/cpu/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>

namespace driftwood::device {
namespace {

TEST(WorkerPool, EveryWorkerRunsOnceEachTime) {
  for (int threads : {1, 2, 3, 8}) {
    WorkerPool pool(threads);
    std::vector<int> calls(threads, 0);  // each entry belongs to one worker
    int expected_full = 0;
    for (int round = 0; round < 2000; ++round) {
      const int workers = round % threads + 1;
      expected_full += workers == threads ? 1 : 0;
      pool.run(workers, [&](int worker, int count) {
        EXPECT_EQ(count, workers);
        ++calls[worker];
      });
    }
    EXPECT_EQ(calls[0], 2000);
    EXPECT_EQ(calls[threads - 1], threads == 1 ? 2000 : expected_full);
  }
}

TEST(WorkerPool, ResultsAreVisibleToTheCaller) {
  WorkerPool pool(4);
  std::vector<int64_t> parts(4, 0);
  for (int64_t round = 1; round <= 1000; ++round) {
    pool.run(4, [&](int worker, int) { parts[worker] = round; });
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), 4 * round);
  }
}

TEST(WorkerPool, EachTaskClaimsEveryNumberOnce) {
  constexpr int64_t kNumbers = 500;
  WorkerPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> taken(kNumbers);
    pool.run(4, [&](int, int) {
      for (int64_t i = pool.claim(); i < kNumbers; i = pool.claim()) ++taken[static_cast<size_t>(i)];
    });
    for (const std::atomic<int>& times : taken) ASSERT_EQ(times, 1);
  }
}

// What a waiting worker works on may still be running when the next task, with another, has begun.
TEST(WorkerPool, WhatWaitersDoDoesNotHoldUpTasks) {
  std::vector<uint8_t> weights(size_t{16} * 64 * 64 * 4);
  MatmulBatchArgs next{1, {}};
  next.parts[0].weight = {PackedLayout::kF32, false, 0, 64, 64, weights.data()};
  WorkerPool pool(3);
  std::vector<int64_t> parts(3, 0);
  for (int64_t round = 1; round <= 2000; ++round) {
    pool.run(
        3, [&](int worker, int) { parts[static_cast<size_t>(worker)] = round; },
        round % 2 == 0 ? ReadAhead(&next) : ReadAhead());
    ASSERT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), 3 * round);
  }
}

TEST(WorkerPool, WakesAfterSleep) {
  WorkerPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // far past the spin
    std::atomic<int> calls{0};
    pool.run(3, [&](int, int) { ++calls; });
    EXPECT_EQ(calls.load(), 3);
  }
}

TEST(WorkerPool, CallersFromSeveralThreadsTakeTurns) {
  WorkerPool pool(3);
  std::atomic<int> inside{0};
  std::atomic<int> calls{0};
  auto caller = [&] {
    for (int i = 0; i < 300; ++i) {
      pool.run(3, [&](int worker, int) {
        if (worker == 0) {
          EXPECT_EQ(inside.fetch_add(1), 0);
        }
        ++calls;
        if (worker == 0) inside.fetch_sub(1);
      });
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back(caller);
  for (std::thread& thread : callers) thread.join();
  EXPECT_EQ(calls.load(), 4 * 300 * 3);
}

TEST(WorkerPool, ManyMoreThreadsThanProcessors) {
  WorkerPool pool(64);
  std::atomic<int> calls{0};
  for (int round = 0; round < 20; ++round) pool.run(64, [&](int, int) { ++calls; });
  EXPECT_EQ(calls.load(), 64 * 20);
}

}  // namespace
}  // namespace driftwood::device
