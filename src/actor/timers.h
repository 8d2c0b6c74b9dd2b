// One actor's timers: at most one per tag; due in order of time, then of setting. Used by its thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace driftwood::actor {

class Timers {
 public:
  struct Timer {
    int64_t tag;
    uint64_t due_ns;  // on the host's monotonic clock
  };
  explicit Timers(int32_t limit) : limit_(limit) {}

  // Sets or re-sets the timer `tag`; `due_ns` on the host's monotonic clock.
  Status set(int64_t tag, uint64_t due_ns) {
    cancel(tag);
    if (list_.size() >= static_cast<size_t>(std::max(limit_, 0))) {
      return resource_exhausted("this actor may have " + std::to_string(limit_) + " timers set");
    }
    const auto place = std::upper_bound(list_.begin(), list_.end(), due_ns,
                                        [](uint64_t due, const Timer& t) { return due < t.due_ns; });
    list_.insert(place, {tag, due_ns});
    return Status::ok();
  }
  bool cancel(int64_t tag) {
    return std::erase_if(list_, [&](const Timer& t) { return t.tag == tag; }) != 0;
  }
  const std::vector<Timer>& list() const { return list_; }  // in order
  int32_t count() const { return static_cast<int32_t>(list_.size()); }
  bool any() const { return !list_.empty(); }
  uint64_t next_due_ns() const { return list_.front().due_ns; }
  // Removes and returns the first timer that is due.
  std::optional<int64_t> take_due(uint64_t now_ns) {
    if (list_.empty() || list_.front().due_ns > now_ns) return std::nullopt;
    const int64_t tag = list_.front().tag;
    list_.erase(list_.begin());
    return tag;
  }

 private:
  int32_t limit_;
  std::vector<Timer> list_;
};

}  // namespace driftwood::actor
