// Live forks of actors, by the host and by the guest itself.
#include <gtest/gtest.h>

#include "actor/compare.h"
#include "actor/scenario_for_test.h"

namespace driftwood::actor {
namespace {

TEST(Fork, OfStreamZeroIsTheParentAgain) {
  Place place;
  DW_NEEDS(place);
  const WholeRun whole = run_whole(place);
  Outbox outbox;  // parent and child share the sink: each line comes twice
  const ActorId id = place.spawn(outbox);
  for (const uint64_t k : {0u, 7u, 16u, 25u, 30u}) {
    place.run_to(id, k);
    const auto child = place.system().fork(id, "child", 0);
    ASSERT_TRUE(child.is_ok()) << child.status().message();
    const auto a = place.system().freeze(id);
    const auto b = place.system().freeze(*child);
    ASSERT_TRUE(a.is_ok() && b.is_ok());
    EXPECT_EQ(*first_difference(**a, **b), "") << k;
    EXPECT_EQ((*b)->name, "child");
    EXPECT_EQ((*b)->life.epoch, 1u);
    place.stop(*child);
  }
  place.run_to(id, kToTheEnd);
  EXPECT_EQ(outbox.text(), whole.text);
  place.stop(id);
  EXPECT_EQ(place.engine().stats().kv_blocks_in_use, 0);
}

TEST(Fork, ATreeOfThemGoesOnIndependently) {
  Place place;
  DW_NEEDS(place);
  const WholeRun whole = run_whole(place);
  Outbox outbox;
  const ActorId root = place.spawn(outbox);
  place.run_to(root, 18);
  const std::string before = outbox.text();
  const ActorId same = *place.system().fork(root, "same", 0);
  const ActorId other = *place.system().fork(root, "other", 9);
  const ActorId grandchild = *place.system().fork(same, "grandchild", 0);
  place.stop(root);  // children outlive their parent
  const auto lines_of = [&](ActorId id) {
    const size_t start = outbox.text().size();
    place.run_to(id, kToTheEnd);
    return outbox.text().substr(start);
  };
  // The guest's message to itself has been read by now, so that names do not matter.
  EXPECT_TRUE(before + lines_of(grandchild) == whole.text);
  EXPECT_TRUE(before + lines_of(other) != whole.text);
  EXPECT_TRUE(before + lines_of(same) == whole.text);
  for (const ActorId id : {same, other, grandchild}) place.stop(id);
  EXPECT_EQ(place.engine().stats().kv_blocks_in_use, 0);
}

TEST(Fork, RefusesTakenAndBadNames) {
  Place place;
  DW_NEEDS(place);
  Outbox outbox;
  const ActorId id = place.spawn(outbox);
  EXPECT_EQ(place.system().fork(id, "self", 0).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(place.system().fork(id, "", 0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(place.system().fork(actor_id_of("nobody"), "x", 0).status().code(), Code::kNotFound);
  EXPECT_EQ(place.system().list().size(), 1u);
  place.stop(id);
}

// Forks itself twice on a message, and says what it is told.
constexpr char kForker[] = R"((module
  (import "driftwood" "actor_fork" (func $fork (param i32 i32 i64 i64) (result i32)))
  (import "driftwood" "checkpoint" (func $checkpoint (param i32 i32) (result i32)))
  (import "driftwood" "emit" (func $emit (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "twinself")
  (global $forks (mut i32) (i32.const 0))
  (func (export "dw_on_message") (param i64 i32)
    (drop (call $fork (i32.const 0) (i32.const 4) (i64.const 0) (i64.const 21)))
    (drop (call $fork (i32.const 4) (i32.const 4) (i64.const 0) (i64.const 22)))
    (i32.store (i32.const 128) (call $checkpoint (i32.const 0) (i32.const 4)))
    (drop (call $emit (i32.const 128) (i32.const 4))))
  (func (export "dw_on_fork") (param i64 i64)
    (global.set $forks (i32.add (global.get $forks) (i32.const 1)))
    (i32.store (i32.const 64) (i32.wrap_i64 (local.get 0)))
    (i32.store (i32.const 68) (i32.wrap_i64 (local.get 1)))
    (drop (call $emit (i32.const 64) (i32.const 8))))))";

TEST(Fork, AGuestForksItselfAndBothAreTold) {
  auto system = ActorSystem::create(shared_runtime(), nullptr, nullptr, {});
  Outbox outbox;
  ActorOptions options = options_with(outbox);
  std::shared_ptr<FrozenActor> kept;
  options.checkpoint = [&](const std::string& name, std::shared_ptr<FrozenActor> frozen) {
    EXPECT_EQ(name, "twin");
    kept = std::move(frozen);
    return Status::ok();
  };
  const auto id = system->spawn("self", module_of(kForker), options);
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  ASSERT_TRUE(system->send(*id, bytes_of("go")).is_ok());
  ASSERT_TRUE(system->wait_idle(*id, kPatience).is_ok());
  const auto twin = system->find("twin");
  ASSERT_TRUE(twin.is_ok());
  ASSERT_TRUE(system->wait_idle(*twin, kPatience).is_ok());
  const std::vector<int32_t> ids = outbox.ids();
  ASSERT_EQ(ids.size(), 1u + 3 * 2);
  const auto low = static_cast<int32_t>(actor_id_of("twin"));
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (size_t i = 1; i < ids.size(); i += 2) pairs.emplace_back(ids[i], ids[i + 1]);
  const auto count = [&](int32_t tag, int32_t child) {
    return std::count(pairs.begin(), pairs.end(), std::make_pair(tag, child));
  };
  EXPECT_EQ(ids[0], 0);                                                  // checkpoint
  EXPECT_EQ(count(21, low), 1);                                          // the parent
  EXPECT_EQ(count(21, 0), 1);                                            // the twin
  EXPECT_EQ(count(22, -static_cast<int32_t>(Code::kAlreadyExists)), 1);  // nobody can be called as the parent
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->life.forks.size(), 2u);  // frozen after the forks, before they were told
}

TEST(Fork, WithoutASinkCheckpointAnswersUnavailable) {
  auto system = ActorSystem::create(shared_runtime(), nullptr, nullptr, {});
  Outbox outbox;
  const auto id = system->spawn("lone", module_of(kForker), options_with(outbox));
  ASSERT_TRUE(system->send(*id, bytes_of("go")).is_ok());
  ASSERT_TRUE(system->wait_idle(*id, kPatience).is_ok());
  ASSERT_FALSE(outbox.ids().empty());
  EXPECT_EQ(outbox.ids()[0], -static_cast<int32_t>(Code::kUnavailable));
}

TEST(Fork, ACommandCannotBeFrozenOrForked) {
  auto system = ActorSystem::create(shared_runtime(), nullptr, nullptr, {});
  Outbox outbox;
  ActorOptions options = options_with(outbox);
  options.hold_at.handlers_run = 0;
  const auto id = system->spawn("command", module_of("(module (func (export \"_start\")))"), options);
  ASSERT_TRUE(id.is_ok());
  const auto frozen = system->freeze(*id);
  EXPECT_EQ(frozen.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(frozen.status().message().find("_start"), std::string::npos);
  EXPECT_EQ(system->fork(*id, "x", 0).status().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace driftwood::actor
