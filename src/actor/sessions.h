// The sessions one actor has open: guest handles to engine sessions, with the mask of the next draw.
//
// A handle is (generation << 12 | slot + 1), so that a closed session's handle is not mistaken for a later
// one. Used by the actor's own thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace driftwood::actor {

struct Session {
  engine::SessionId id = 0;
  int32_t handle = 0;  // 0: the slot is free
  uint32_t generation = 0;
  int64_t capacity = 0;     // tokens it may hold
  bool generating = false;  // a generate is outstanding: the guest may not change it
  bool masked = false;
  std::vector<uint64_t> mask;  // of the next draw, if masked; kept for reuse

  std::span<const uint64_t> next_mask() const {
    return masked ? std::span<const uint64_t>(mask) : std::span<const uint64_t>();
  }
};

class Sessions {
 public:
  static constexpr int32_t kMaxSlots = 4095;
  static constexpr int kSlotBits = 12;  // a handle is generation << kSlotBits | slot + 1

  explicit Sessions(int32_t limit);
  // resource_exhausted if one more would exceed the limit.
  Status check_room() const;
  // Precondition: check_room(). The pointer is valid until the next add.
  Session* add(engine::SessionId id, int64_t capacity);
  // Null if the handle is not open.
  Session* find(int32_t handle);
  void remove(Session* session);
  int32_t count() const { return count_; }
  // Every slot, closed ones too: their generations must not be used again.
  const std::vector<Session>& slots() const { return slots_; }
  // Takes these slots, whose open ones (handle != 0) have engine sessions. Precondition: none open here.
  void adopt(std::vector<Session> slots);
  // Closes all of them in the engine.
  void close_all(engine::Engine* engine);

 private:
  int32_t limit_;
  int32_t count_ = 0;
  std::vector<Session> slots_;
};

}  // namespace driftwood::actor
