#include "region/read_ahead.h"

#include <algorithm>

#include "os/memory_map.h"

namespace driftwood::region {
namespace {

// Looked at and read as one: small enough to stop soon, large enough for the disk.
constexpr size_t kPieceBytes = size_t{1} << 20;

const uint8_t* page_of(const uint8_t* address) {
  return address - reinterpret_cast<uintptr_t>(address) % os::page_bytes();
}

bool seems_resident(std::span<const uint8_t> piece) {
  return os::is_resident(page_of(piece.data())) && os::is_resident(page_of(&piece.back()));
}

}  // namespace

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ReadAhead::request(std::span<const std::span<const uint8_t>> ranges) {
  if (ranges.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.insert(queue_.end(), ranges.begin(), ranges.end());
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  wake_.notify_one();
}

void ReadAhead::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [&] { return queue_.empty() && !working_; });
}

void ReadAhead::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    std::span<const uint8_t>& front = queue_.front();
    const std::span<const uint8_t> piece = front.first(std::min(front.size(), kPieceBytes));
    front = front.subspan(piece.size());
    if (front.empty()) queue_.pop_front();
    working_ = true;
    lock.unlock();
    if (!piece.empty() && !seems_resident(piece)) os::populate_pages(piece.data(), piece.size());
    lock.lock();
    working_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

}  // namespace driftwood::region
