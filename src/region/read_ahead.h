// ReadAhead: brings mapped pages of files into memory before somebody waits for them.
//
// Why a thread and why like this (measured, 100 MB of 96 blocks mapped, two threads then touching all of it
// out of order): in the page cache already, the faults of the touching threads are cheapest, every kind of
// advice cost more than it saved; on the disk, letting the kernel read ahead of an in-order reader took half
// the time of faults out of order, and less than advice without waiting (MADV_WILLNEED). So this is for files
// that are not in memory (image_file.h tells), and a thread reads only the pieces that are missing.
//
// Threads: one of its own, started with the first request; requests come from any thread. It only gives
// advice: a range may be remapped or unmapped from its reservation meanwhile. Destruction waits for the piece
// in progress and drops the rest.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>

namespace driftwood::region {

class ReadAhead {
 public:
  ReadAhead() = default;
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Addresses within a reservation, which outlives this object.
  void request(std::span<const std::span<const uint8_t>> ranges);
  // Returns when everything requested has been looked at (for tests and measurements).
  void wait();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<std::span<const uint8_t>> queue_;
  bool working_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace driftwood::region
