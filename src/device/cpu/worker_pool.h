// WorkerPool: a fixed team of threads that runs one task at a time.
//
// The caller is worker 0. Between tasks the others spin for a few tens of microseconds, then sleep, so that
// the ops of a decode step find them awake and an idle process uses no CPU. With more threads than processors
// nobody spins.
//
// Threads: any thread may call run(); callers from several threads take turns (one atomic exchange when
// nobody else is there). A task must not call run() of the same pool. Cost in steady state: no allocation and
// no system call while the workers are awake.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "device/cpu/read_ahead.h"

namespace driftwood::device {

inline constexpr int kMaxThreads = 255;  // a worker count travels in 8 bits of the signal word

class WorkerPool {
 public:
  using Task = void (*)(const void* context, int worker, int workers);

  // threads counts the caller; 1..kMaxThreads.
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(worker, workers) once for each worker 0..workers-1, then returns. workers <= threads().
  // Whoever has to wait afterwards works on `idle` meanwhile, a copy of which outlives the call.
  template <typename Body>
  void run(int workers, const Body& body, const ReadAhead& idle = {}) {
    run(
        workers,
        [](const void* context, int worker, int count) {
          (*static_cast<const Body*>(context))(worker, count);
        },
        &body, idle);
  }
  void run(int workers, Task task, const void* context, const ReadAhead& idle);

  // In a task: 0, 1, 2, ... over all its workers, each number once. For what is not split beforehand.
  int64_t claim() { return claimed_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void worker_loop(int worker);
  void move_off_the_callers_processor(int64_t* moved_ns) const;
  // Until the word is another or `idle` has nothing left.
  static void use_the_wait(const std::atomic<uint32_t>& word, uint32_t old, const ReadAhead& idle, int worker,
                           int workers);
  // Until the word is another; true if that took longer than well-split work does.
  bool spin_then_sleep(const std::atomic<uint32_t>& word, uint32_t old) const;

  // sequence << 8 | workers of the current task. Workers that do not take part read nothing else.
  alignas(64) std::atomic<uint32_t> signal_{0};
  alignas(64) std::atomic<uint32_t> pending_{0};  // workers, the caller aside, still in the task
  alignas(64) std::atomic<uint32_t> busy_{0};     // 1 while a caller owns the pool
  alignas(64) std::atomic<int64_t> claimed_{0};   // by the current task
  std::atomic<bool> stop_{false};
  Task task_ = nullptr;
  const void* context_ = nullptr;
  ReadAhead idle_;
  int caller_processor_ = -1;  // told if it waited long in the task before, else -1
  bool waited_long_ = false;   // whoever owns the pool
  int64_t spin_ns_;
  std::vector<std::thread> workers_;
};

}  // namespace driftwood::device
