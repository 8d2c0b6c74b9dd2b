// RingSpace: places in a ring of memory, taken and given back in the same order, each in one piece.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

namespace driftwood::weights {

class RingSpace {
 public:
  explicit RingSpace(size_t capacity) : capacity_(capacity) {}

  // The offset of `bytes` (more than none), or nothing while too little is free in one piece.
  std::optional<size_t> take(size_t bytes) {
    if (taken_.empty()) head_ = 0;
    const size_t oldest = taken_.empty() ? capacity_ : taken_.front();
    const bool wrapped = head_ <= oldest && !taken_.empty();
    size_t begin = head_;
    if ((wrapped ? oldest : capacity_) - head_ < bytes) {
      if (wrapped || taken_.empty() || oldest < bytes) return std::nullopt;
      begin = 0;
    }
    head_ = begin + bytes;
    taken_.push_back(begin);
    return begin;
  }

  // The place that was taken first.
  void give_back() { taken_.pop_front(); }

 private:
  size_t capacity_;
  size_t head_ = 0;  // where the last place ends
  std::deque<size_t> taken_;
};

}  // namespace driftwood::weights
