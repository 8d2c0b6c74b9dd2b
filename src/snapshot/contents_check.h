// ContentsCheck: bytes and what they must be, gathered first and checked at once on several threads.
//
// Several checks run together in one pass over all their bytes; each keeps its own status: the fault of what
// was added first. Bytes are borrowed until run() returned. Threads: one at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "snapshot/digest.h"

namespace driftwood::snapshot {

class ContentsCheck {
 public:
  // Says what is wrong; called only if something is, after all bytes were looked at.
  using DigestFault = std::function<Status(const Digest& found)>;
  using ZerosFault = std::function<Status(uint64_t first_other)>;

  void expect_digest(ByteSpan bytes, const Digest& wanted, DigestFault fault);
  void expect_zeros(ByteSpan bytes, ZerosFault fault);

  // On at most `threads` threads, the caller's among them. Fewer if the system gives no more.
  static void run(std::span<ContentsCheck> checks, int threads);
  Status run(int threads);
  // After run().
  const Status& status() const { return status_; }

 private:
  struct Entry {
    ByteSpan bytes;
    Digest wanted{};
    DigestFault digest_fault;
    ZerosFault zeros_fault;  // one of the two
    bool good = false;
  };
  static void look_at(Entry* entry);
  void conclude();

  std::vector<Entry> entries_;
  Status status_;
};

}  // namespace driftwood::snapshot
