#include "device/cpu/worker_pool.h"

#include <chrono>

#include "base/check.h"
#include "os/cpu_features.h"
#include "os/processor.h"

namespace driftwood::device {
namespace {

constexpr int64_t kSpinNs = 40'000;
// Well-split work lets nobody wait so long: whoever is waited for may not be running.
constexpr int64_t kLongWaitNs = 12'000;
constexpr int kPausesPerClock = 16;
constexpr int64_t kBetweenMovesNs = 1'000'000;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

WorkerPool::WorkerPool(int threads) : spin_ns_(threads <= os::usable_processors() ? kSpinNs : 0) {
  DW_CHECK(threads >= 1 && threads <= kMaxThreads, "thread count outside 1..255");
  workers_.reserve(threads - 1);
  for (int worker = 1; worker < threads; ++worker) {
    workers_.emplace_back([this, worker] { worker_loop(worker); });
  }
}

WorkerPool::~WorkerPool() {
  stop_.store(true, std::memory_order_relaxed);
  signal_.fetch_add(1u << 8, std::memory_order_release);
  signal_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool WorkerPool::spin_then_sleep(const std::atomic<uint32_t>& word, uint32_t old) const {
  if (spin_ns_ > 0) {
    const int64_t start = now_ns();
    for (int64_t waited = 0; waited < spin_ns_; waited = now_ns() - start) {
      // It may be this very processor that is missing there.
      if (waited > kLongWaitNs) std::this_thread::yield();
      for (int i = 0; i < kPausesPerClock; ++i) {
        if (word.load(std::memory_order_acquire) != old) return waited > kLongWaitNs;
        os::spin_pause();
      }
    }
  }
  word.wait(old, std::memory_order_acquire);
  return true;
}

void WorkerPool::use_the_wait(const std::atomic<uint32_t>& word, uint32_t old, const ReadAhead& idle,
                              int worker, int workers) {
  for (int64_t step = 0; word.load(std::memory_order_acquire) == old && idle(worker, workers, step); ++step) {
  }
}

void WorkerPool::run(int workers, Task task, const void* context, const ReadAhead& idle) {
  DW_CHECK(workers >= 1 && workers <= threads(), "more workers than the pool has");
  if (workers == 1) {
    task(context, 0, 1);
    return;
  }
  while (busy_.exchange(1, std::memory_order_acquire) != 0) busy_.wait(1, std::memory_order_relaxed);
  task_ = task;
  context_ = context;
  idle_ = idle;
  claimed_.store(0, std::memory_order_relaxed);
  pending_.store(static_cast<uint32_t>(workers - 1), std::memory_order_relaxed);
  caller_processor_ = waited_long_ ? os::current_processor() : -1;
  const uint32_t sequence = (signal_.load(std::memory_order_relaxed) >> 8) + 1;
  signal_.store(sequence << 8 | static_cast<uint32_t>(workers), std::memory_order_release);
  signal_.notify_all();
  task(context, 0, workers);
  waited_long_ = false;
  if (const uint32_t left = pending_.load(std::memory_order_acquire); left != 0)
    use_the_wait(pending_, left, idle, 0, workers);
  for (uint32_t left; (left = pending_.load(std::memory_order_acquire)) != 0;)
    waited_long_ = spin_then_sleep(pending_, left) || waited_long_;
  busy_.store(0, std::memory_order_release);
  busy_.notify_one();
}

// A system that does not know that processors share a cache wakes a thread where it slept. A worker that
// shares a processor with the caller takes turns with it, and two that take turns are never moved apart.
void WorkerPool::move_off_the_callers_processor(int64_t* moved_ns) const {
  if (spin_ns_ == 0 || caller_processor_ < 0 || os::current_processor() != caller_processor_) return;
  const int64_t now = now_ns();
  if (now - *moved_ns < kBetweenMovesNs) return;
  *moved_ns = now;
  os::leave_processor(caller_processor_);
}

void WorkerPool::worker_loop(int worker) {
  uint32_t seen = 0;
  int64_t moved_ns = 0;
  for (;;) {
    uint32_t word = signal_.load(std::memory_order_acquire);
    if (word == seen) {
      spin_then_sleep(signal_, seen);
      continue;
    }
    seen = word;
    if (stop_.load(std::memory_order_relaxed)) return;
    const int workers = static_cast<int>(word & 0xffu);
    if (worker >= workers) continue;
    move_off_the_callers_processor(&moved_ns);
    const ReadAhead idle = idle_;  // the next task's, once this one is told to be done
    task_(context_, worker, workers);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
    use_the_wait(signal_, seen, idle, worker, workers);
  }
}

}  // namespace driftwood::device
