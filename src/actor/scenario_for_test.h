// What the tests of freezing share: a guest that uses every kind of state (testdata/everything.c), a script of messages, and
// places where it can live.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "actor/actors_for_test.h"
#include "actor/frozen_actor.h"

namespace driftwood::actor {

// A message from outside arrives when the actor has run so many handlers.
struct Arrival {
  uint64_t handlers = 0;
  const char* text;
};
inline constexpr Arrival kScript[] = {{4, "hello"}, {9, "fail"}, {17, "open"}, {30, "cancel"}};

// One engine and one system: a place where an actor can live.
class Place {
 public:
  Place() : opened_(open_tiny()) {
    if (opened_.engine == nullptr) return;
    system_ = ActorSystem::create(shared_runtime(), opened_.engine.get(), &shared_device(), {});
  }
  bool ready() const { return system_ != nullptr; }
  ActorSystem& system() { return *system_; }
  engine::Engine& engine() { return *opened_.engine; }

  ActorId spawn(Outbox& outbox) {
    ActorOptions options = options_with(outbox, "some configuration");
    options.seed = 5;
    options.hold_at.handlers_run = 0;
    const auto id = system_->spawn("self", guest("test_everything"), options);
    EXPECT_TRUE(id.is_ok()) << id.status().message();
    return *id;
  }
  // Lets it run to that many handlers, or to its end, with the script's messages on the way.
  void run_to(ActorId id, uint64_t handlers) {
    for (const Arrival& arrival : kScript) {
      if (arrival.handlers < status(id).handlers_run || arrival.handlers >= handlers) continue;
      hold_at(id, arrival.handlers);
      if (status(id).handlers_run != arrival.handlers) break;
      static_cast<void>(system_->send(id, bytes_of(arrival.text)));
    }
    hold_at(id, handlers);
  }
  ActorStatus status(ActorId id) {
    const auto status = system_->status(id);
    EXPECT_TRUE(status.is_ok());
    return *status;
  }
  void stop(ActorId id) { EXPECT_TRUE(system_->stop(id).is_ok()); }

 private:
  void hold_at(ActorId id, uint64_t handlers) {
    HoldPoint point;
    point.handlers_run = handlers;
    // It may have ended, where a part of its state was taken away.
    if (system_->hold_at(id, point).is_ok()) static_cast<void>(system_->wait_idle(id, kPatience));
  }
  OpenedModel opened_;
  std::unique_ptr<ActorSystem> system_;
};

inline constexpr uint64_t kToTheEnd = 1000;

struct WholeRun {
  std::string text;
  uint64_t handlers = 0;
};

inline WholeRun run_whole(Place& place) {
  Outbox outbox;
  const ActorId id = place.spawn(outbox);
  place.run_to(id, kToTheEnd);
  WholeRun whole{outbox.text(), place.status(id).handlers_run};
  place.stop(id);
  return whole;
}

#define DW_NEEDS(place) \
  if (!(place).ready()) GTEST_SKIP() << "no fixture models: DRIFTWOOD_FIXTURE_MODELS is not set"

// Runs to `handlers`, then freezes; the text so far goes to *text.
inline std::shared_ptr<FrozenActor> frozen_at(Place& place, uint64_t handlers, std::string* text) {
  Outbox outbox;
  const ActorId id = place.spawn(outbox);
  place.run_to(id, handlers);
  auto frozen = place.system().freeze(id);
  EXPECT_TRUE(frozen.is_ok()) << frozen.status().message();
  *text = outbox.text();
  place.stop(id);
  return frozen.is_ok() ? *frozen : nullptr;
}

inline std::string rest_of(Place& place, const FrozenActor& frozen) {
  Outbox outbox;
  ActorOptions options = options_with(outbox);
  options.hold_at.handlers_run = frozen.life.handlers_run;
  const auto id = place.system().thaw("self", frozen, nullptr, options);
  if (!id.is_ok()) return "refused: " + id.status().message();
  place.run_to(*id, kToTheEnd);
  place.stop(*id);
  return outbox.text();
}

}  // namespace driftwood::actor
