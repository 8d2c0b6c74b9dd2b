// Which weights stay when not all of them fit into memory. Pure arithmetic; weight_stream.h acts on it.
//
// A step goes through stages, each with its matrices, always in the same order. Those that stay are spread
// evenly over that order, so that the disk has something to do all through a step; with less memory almost
// only stages are taken away, so little moves when memory changes. A stage that is a large part of all, as
// the head of a small model, goes first: a window for it would take the memory that it would save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace driftwood::weights {

class StreamPlan {
 public:
  // Nothing stays until keep() is called.
  explicit StreamPlan(std::vector<int64_t> stage_bytes);

  size_t size() const { return bytes_.size(); }
  int64_t bytes(size_t stage) const { return bytes_[stage]; }
  int64_t total_bytes() const { return total_bytes_; }
  int64_t largest_bytes() const { return largest_bytes_; }  // of a stage

  // As many stages stay as fit into `bytes`.
  void keep(int64_t bytes);
  bool kept(size_t stage) const { return kept_[stage]; }
  int64_t kept_bytes() const { return kept_bytes_; }

 private:
  std::vector<int64_t> bytes_;
  std::vector<size_t> order_;  // stages, those that stay longest first
  std::vector<bool> kept_;
  int64_t kept_bytes_ = 0;
  int64_t total_bytes_ = 0;
  int64_t largest_bytes_ = 0;
};

}  // namespace driftwood::weights
