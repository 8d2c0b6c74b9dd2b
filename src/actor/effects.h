// What a handler has sent, emitted and printed so far: nothing of it is visible until the handler returns.
//
// One byte buffer and one list, cleared and reused between handlers. Every piece costs its length plus
// kOverheadBytes of the handler's budget, so that empty ones are bounded too. Used by the actor's thread
// only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <map>
#include <vector>

#include "actor/actor.h"

namespace driftwood::actor {

class Effects {
 public:
  static constexpr uint64_t kOverheadBytes = 64;

  struct Effect {
    bool to_actor = false;  // else to the world outside, as `kind`
    OutputKind kind = OutputKind::kEmit;
    ActorId target = kOutside;
    size_t offset = 0;
    size_t length = 0;
  };

  explicit Effects(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  Status output(OutputKind kind, std::span<const uint8_t> bytes) {
    return add({false, kind, kOutside, 0, bytes.size()}, bytes);
  }
  Status message(ActorId target, std::span<const uint8_t> bytes) {
    return add({true, OutputKind::kEmit, target, 0, bytes.size()}, bytes);
  }
  // Takes from the same budget without an effect (log lines).
  Status charge(uint64_t bytes) {
    if (bytes > limit_bytes_ - used_ || kOverheadBytes > limit_bytes_ - used_ - bytes) {
      return resource_exhausted("this handler has used its " + std::to_string(limit_bytes_) +
                                " bytes of output");
    }
    used_ += bytes + kOverheadBytes;
    return Status::ok();
  }

  // Messages to that actor among them.
  size_t staged_for(ActorId target) const {
    const auto it = staged_.find(target);
    return it == staged_.end() ? 0 : it->second;
  }

  const std::vector<Effect>& list() const { return list_; }
  std::span<const uint8_t> bytes(const Effect& effect) const {
    return std::span<const uint8_t>(bytes_).subspan(effect.offset, effect.length);
  }
  void clear() {
    list_.clear();
    staged_.clear();
    bytes_.clear();
    if (bytes_.capacity() > kKeepBytes) bytes_.shrink_to_fit();
    used_ = 0;
  }

 private:
  static constexpr size_t kKeepBytes = 64 << 10;

  Status add(Effect effect, std::span<const uint8_t> bytes) {
    DW_RETURN_IF_ERROR(charge(bytes.size()));
    effect.offset = bytes_.size();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    list_.push_back(effect);
    if (effect.to_actor) ++staged_[effect.target];
    return Status::ok();
  }

  uint64_t limit_bytes_;
  uint64_t used_ = 0;
  std::vector<Effect> list_;
  std::map<ActorId, size_t> staged_;
  std::vector<uint8_t> bytes_;
};

}  // namespace driftwood::actor
