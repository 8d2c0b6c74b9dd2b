// KvShare: the block pool and the lock that covers it, as one thing that outlives the engine if need be.
//
// Why: a frozen session keeps references of KV blocks (KvPin) and may be dropped by any thread, at any time,
// before or after its engine. Whoever goes last frees the pool.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kv/block_pool.h"

namespace driftwood::engine {

struct KvShare {
  explicit KvShare(std::unique_ptr<kv::BlockPool> blocks) : pool(std::move(blocks)) {}
  std::mutex mutex;
  const std::unique_ptr<kv::BlockPool> pool;
};

// References of blocks, given back when it goes; must not go while its thread holds the mutex. While a block
// is pinned it has at least two owners or no session at all, so no session writes it (kv/block_table.h).
class KvPin {
 public:
  // The references are already counted; the pin takes them over.
  KvPin(std::shared_ptr<KvShare> share, std::vector<int32_t> ids)
      : share_(std::move(share)), ids_(std::move(ids)) {}
  ~KvPin() {
    std::lock_guard<std::mutex> lock(share_->mutex);
    share_->pool->release(ids_);
  }
  KvPin(const KvPin&) = delete;
  KvPin& operator=(const KvPin&) = delete;

  const std::vector<int32_t>& ids() const { return ids_; }
  // The copy of the last block where that is not full, zero past the session's tokens.
  std::vector<uint8_t>& tail() { return tail_; }

 private:
  const std::shared_ptr<KvShare> share_;
  const std::vector<int32_t> ids_;
  std::vector<uint8_t> tail_;
};

}  // namespace driftwood::engine
