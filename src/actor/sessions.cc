#include "actor/sessions.h"

#include <algorithm>
#include <string>

namespace driftwood::actor {
namespace {

constexpr int32_t kSlotMask = (1 << Sessions::kSlotBits) - 1;
constexpr uint32_t kGenerationMask = (1u << (31 - Sessions::kSlotBits)) - 1;

}  // namespace

Sessions::Sessions(int32_t limit) : limit_(std::clamp(limit, 0, kMaxSlots)) {}

Status Sessions::check_room() const {
  if (count_ < limit_) return Status::ok();
  return resource_exhausted("this actor may have " + std::to_string(limit_) + " sessions open");
}

Session* Sessions::add(engine::SessionId id, int64_t capacity) {
  auto free = std::find_if(slots_.begin(), slots_.end(), [](const Session& s) { return s.handle == 0; });
  if (free == slots_.end()) {
    slots_.emplace_back();
    free = slots_.end() - 1;
  }
  const auto slot = static_cast<int32_t>(free - slots_.begin());
  free->id = id;
  free->generation = (free->generation + 1) & kGenerationMask;
  free->handle = static_cast<int32_t>(free->generation << kSlotBits) | (slot + 1);
  free->capacity = capacity;
  free->generating = false;
  free->masked = false;
  ++count_;
  return &*free;
}

Session* Sessions::find(int32_t handle) {
  const int32_t slot = (handle & kSlotMask) - 1;
  if (handle <= 0 || slot < 0 || slot >= static_cast<int32_t>(slots_.size())) return nullptr;
  Session& session = slots_[static_cast<size_t>(slot)];
  return session.handle == handle ? &session : nullptr;
}

void Sessions::remove(Session* session) {
  session->handle = 0;
  --count_;
}

void Sessions::adopt(std::vector<Session> slots) {
  DW_CHECK(count_ == 0, "sessions are adopted by an actor that has none");
  slots_ = std::move(slots);
  count_ = static_cast<int32_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Session& s) { return s.handle != 0; }));
}

void Sessions::close_all(engine::Engine* engine) {
  for (Session& session : slots_) {
    if (session.handle == 0) continue;
    const Status closed = engine->close(session.id);
    DW_CHECK(closed.is_ok(), closed.message().c_str());
    remove(&session);
  }
}

}  // namespace driftwood::actor
