// PieceHasher: hashes many pieces in order, ahead of whoever wants them, so that hashing and writing overlap.
//
// wait(i) returns when piece i is done; the caller hashes itself while there is something left to claim.
// Threads: `threads` - 1 of its own; wait() from one. Pieces are borrowed while it lives.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "snapshot/digest.h"

namespace driftwood::snapshot {

struct PieceJob {
  ByteSpan bytes;
  Digest digest{};    // set if the piece is not zero
  bool zero = false;  // all bytes are
};

class PieceHasher {
 public:
  PieceHasher(std::vector<PieceJob> jobs, int threads);
  ~PieceHasher();
  PieceHasher(const PieceHasher&) = delete;
  PieceHasher& operator=(const PieceHasher&) = delete;

  const PieceJob& wait(size_t job);

 private:
  bool work_once();
  std::vector<PieceJob> jobs_;
  std::unique_ptr<std::atomic<bool>[]> done_;
  std::atomic<size_t> next_{0};
  std::vector<std::jthread> threads_;
};

}  // namespace driftwood::snapshot
