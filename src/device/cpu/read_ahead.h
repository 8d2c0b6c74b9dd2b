// ReadAhead: what a worker does while it waits after a matmul: it asks for the first weights of its part of
// the next one. Between two matmuls of a decode step the memory would have nothing to do.
//
// A copy travels with the task (WorkerPool::run), so that a worker may still read it when the next task has
// begun. Advice only: it reads nothing, changes nothing, and costs no result a bit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/op_args.h"

namespace driftwood::device {

// Of `units`, the row groups of a batch: [0, ranged) go in equal ranges, the rest to whoever is ready.
inline int64_t ranged_units(int64_t units) { return units - units / 4; }

class ReadAhead {
 public:
  ReadAhead() = default;
  explicit ReadAhead(const MatmulBatchArgs* next) {
    for (int i = 0; next != nullptr && i < next->count; ++i) {
      const PackedMatrix& w = next->parts[i].weight;
      parts_[count_++] = {w.data, w.groups(), static_cast<int64_t>(w.group_bytes())};
    }
  }

  // Asks for the step-th kStepBytes of what worker `worker` of `workers` will stream first; false when there
  // is no more worth asking for.
  bool operator()(int worker, int workers, int64_t step) const {
    int64_t units = 0;
    for (int i = 0; i < count_; ++i) units += parts_[i].groups;
    const int64_t ranged = ranged_units(units);
    int64_t begin = ranged * worker / workers;
    int64_t left = ranged * (worker + 1) / workers - begin;
    for (int i = 0; i < count_; ++i) {
      const Part& part = parts_[i];
      if (begin < part.groups) {
        const int64_t bytes = std::min(std::min(left, part.groups - begin) * part.group_bytes, kMostBytes);
        const uint8_t* from = part.data + begin * part.group_bytes + step * kStepBytes;
        for (int64_t at = 0; at < kStepBytes; at += 64) __builtin_prefetch(from + at, 0, 2);
        return (step + 1) * kStepBytes < bytes;
      }
      begin -= part.groups;
    }
    return false;
  }

 private:
  static constexpr int64_t kStepBytes = 512;
  static constexpr int64_t kMostBytes = 96 * 1024;  // a part of a small L2

  struct Part {
    const uint8_t* data;
    int64_t groups;
    int64_t group_bytes;
  };
  Part parts_[4] = {};
  int count_ = 0;
};

}  // namespace driftwood::device
