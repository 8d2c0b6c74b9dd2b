#include "wasm/epoch_ticker.h"

#include <algorithm>
#include <utility>

namespace driftwood::wasm {

EpochTicker::EpochTicker(std::chrono::milliseconds period, std::function<void()> tick)
    : period_(std::max(period, std::chrono::milliseconds(1))), tick_(std::move(tick)) {}

EpochTicker::~EpochTicker() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t EpochTicker::ticks_for(std::chrono::milliseconds duration) const {
  const uint64_t whole = static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0));
  const uint64_t period = static_cast<uint64_t>(period_.count());
  return whole / period + (whole % period != 0 ? 1 : 0) + 1;
}

void EpochTicker::start_thread() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (running_.load(std::memory_order_relaxed)) return;
  thread_ = std::thread([this] { run(); });
  running_.store(true, std::memory_order_release);
}

void EpochTicker::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_changed_.wait_for(lock, period_, [this] { return stop_; })) {
    ticks_.fetch_add(1, std::memory_order_relaxed);
    tick_();
  }
}

}  // namespace driftwood::wasm
