#include "snapshot/piece_hasher.h"

#include <algorithm>
#include <system_error>

namespace driftwood::snapshot {

PieceHasher::PieceHasher(std::vector<PieceJob> jobs, int threads)
    : jobs_(std::move(jobs)), done_(new std::atomic<bool>[jobs_.size()]()) {
  const size_t wanted = std::min(jobs_.size(), static_cast<size_t>(std::max(threads, 1)));
  try {
    while (threads_.size() + 1 < wanted) {
      threads_.emplace_back([this] {
        while (work_once()) {
        }
      });
    }
  } catch (const std::system_error&) {
    // The threads there are do the work.
  }
}

PieceHasher::~PieceHasher() { next_ = jobs_.size(); }

bool PieceHasher::work_once() {
  if (next_ >= jobs_.size()) return false;
  const size_t i = next_++;
  if (i >= jobs_.size()) return false;
  PieceJob& job = jobs_[i];
  job.zero = is_zero(job.bytes);
  if (!job.zero) job.digest = blake3(job.bytes);
  done_[i] = true;
  done_[i].notify_one();
  return true;
}

const PieceJob& PieceHasher::wait(size_t job) {
  while (!done_[job]) {
    if (!work_once()) done_[job].wait(false);
  }
  return jobs_[job];
}

}  // namespace driftwood::snapshot
