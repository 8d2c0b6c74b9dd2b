// EpochTicker: the clock of CPU deadlines. A thread advances a Wasmtime engine's epoch once per period.
//
// The thread starts with the first deadline (start() is cheap afterwards) and ends with the object. A period
// that the machine slept through counts once: a stalled machine lengthens deadlines, it does not kill guests.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace driftwood::wasm {

class EpochTicker {
 public:
  EpochTicker(std::chrono::milliseconds period, std::function<void()> tick);
  ~EpochTicker();
  EpochTicker(const EpochTicker&) = delete;
  EpochTicker& operator=(const EpochTicker&) = delete;

  void start() {
    if (!running_.load(std::memory_order_acquire)) start_thread();
  }
  uint64_t now() const { return ticks_.load(std::memory_order_relaxed); }
  std::chrono::milliseconds period() const { return period_; }

  // Ticks that surely cover `duration`: rounded up, and one more as the current period has already begun.
  uint64_t ticks_for(std::chrono::milliseconds duration) const;

 private:
  void start_thread();
  void run();

  const std::chrono::milliseconds period_;
  const std::function<void()> tick_;
  std::atomic<uint64_t> ticks_{0};
  std::atomic<bool> running_{false};
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;    // guarded by mutex_
  std::thread thread_;   // guarded by mutex_ until the destructor
};

}  // namespace driftwood::wasm
