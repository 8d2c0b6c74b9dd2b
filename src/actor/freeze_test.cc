// An actor frozen at any of its rest points and thawed elsewhere goes on as the one that never stopped, and
// every part of the frozen state matters.
#include <gtest/gtest.h>

#include <functional>

#include "actor/scenario_for_test.h"

namespace driftwood::actor {
namespace {

TEST(Freeze, ThawedAtEveryRestPointItGoesOnAsIfItHadNeverStopped) {
  Place here;
  Place elsewhere;
  DW_NEEDS(here);
  const WholeRun whole = run_whole(here);
  ASSERT_GT(whole.handlers, 35u) << whole.text;
  EXPECT_EQ(run_whole(elsewhere).text, whole.text);
  for (uint64_t k = 0; k <= whole.handlers; ++k) {
    std::string before;
    const auto frozen = frozen_at(here, k, &before);
    ASSERT_NE(frozen, nullptr);
    ASSERT_EQ(before + rest_of(elsewhere, *frozen), whole.text) << "frozen after " << k << " handlers";
  }
  EXPECT_EQ(here.engine().stats().kv_blocks_in_use, 0);
  EXPECT_EQ(elsewhere.engine().stats().kv_blocks_in_use, 0);
}

TEST(Freeze, TheFrozenOneItselfGoesOnUndisturbed) {
  Place place;
  DW_NEEDS(place);
  const WholeRun whole = run_whole(place);
  Outbox outbox;
  const ActorId id = place.spawn(outbox);
  std::vector<std::shared_ptr<FrozenActor>> values;
  for (uint64_t k = 0; k < whole.handlers; ++k) {
    place.run_to(id, k);
    auto frozen = place.system().freeze(id);
    ASSERT_TRUE(frozen.is_ok()) << frozen.status().message();
    values.push_back(*frozen);  // blocks stay pinned all the while
  }
  place.run_to(id, kToTheEnd);
  EXPECT_EQ(outbox.text(), whole.text);
  place.stop(id);
}

TEST(Freeze, EveryPartOfTheStateMatters) {
  Place place;
  DW_NEEDS(place);
  const WholeRun whole = run_whole(place);
  using Change = std::function<void(FrozenActor&)>;
  struct Case {
    const char* what;
    uint64_t at;
    Change lose;
  };
  const Case cases[] = {
      {"memory", 12, [](FrozenActor& f) { f.memory.patches.clear(); }},
      {"globals", 12, [](FrozenActor& f) { f.globals.at(0).bits -= 64; }},
      {"mailbox", 1, [](FrozenActor& f) { f.life.mailbox.clear(); }},
      {"timers", 1, [](FrozenActor& f) { f.life.timers.clear(); }},
      {"random", 12, [](FrozenActor& f) { f.life.draws.random_words = 0; }},
      {"random seed", 12, [](FrozenActor& f) { f.life.draws.seed = 0; }},
      {"last error", 12, [](FrozenActor& f) { f.life.last_error.clear(); }},
      {"configuration", 0, [](FrozenActor& f) { f.setup.config.clear(); }},
      {"whether it has started", 12, [](FrozenActor& f) { f.life.started = false; }},
      {"token ids", 12, [](FrozenActor& f) { f.sessions.at(1).tokens.back() ^= 1; }},
      {"KV", 12,
       [](FrozenActor& f) {
         static const std::vector<uint8_t> zeros(static_cast<size_t>(f.sessions.at(0).block_bytes));
         f.sessions.at(0).kv_blocks.at(0) = zeros;
       }},
      {"logits or pending tokens", 12,
       [](FrozenActor& f) {
         for (engine::FrozenSession& s : f.sessions) {
           s.has_logits = false;
           s.logits = {};
           s.tokens.resize(static_cast<size_t>(s.computed));
         }
       }},
      {"sampler seed", 12, [](FrozenActor& f) { f.sessions.at(1).sampling.seed = 1; }},
      {"sampler temperature", 12, [](FrozenActor& f) { f.sessions.at(1).sampling.temperature = 0; }},
      {"sampler penalties", 12, [](FrozenActor& f) { f.sessions.at(0).sampling.repetition_penalty = 2; }},
      {"session limit", 12,
       [](FrozenActor& f) { f.sessions.at(0).max_tokens = f.life.slots.at(0).capacity = 10; }},
      {"generates", 12,
       [](FrozenActor& f) {
         f.life.generates.running.clear();
         for (Session& s : f.life.slots) s.generating = false;
       }},
      {"tokens a generate has left", 12, [](FrozenActor& f) { f.life.generates.running.at(1).produced = 0; }},
      {"whose turn it is", 12, [](FrozenActor& f) { f.life.generates.turn += 1; }},
      {"closed handles", 12,
       [](FrozenActor& f) {
         f.life.slots.resize(f.life.slots.size() + 1);  // as if a slot had never been used
         std::swap(f.life.slots.back().generation, f.life.slots.at(0).generation);
       }},
      {"token limit", 12, [](FrozenActor& f) { f.setup.limits.max_tokens = 25; }},
      {"tokens used", 12, [](FrozenActor& f) { f.life.tokens_generated = f.setup.limits.max_tokens - 12; }},
      {"effect limit", 12, [](FrozenActor& f) { f.setup.limits.max_effect_bytes = 100; }},
  };
  for (const Case& one : cases) {
    std::string before;
    const auto frozen = frozen_at(place, one.at, &before);
    ASSERT_NE(frozen, nullptr);
    ASSERT_EQ(before + rest_of(place, *frozen), whole.text);
    FrozenActor changed = *frozen;
    one.lose(changed);
    EXPECT_TRUE(before + rest_of(place, changed) != whole.text) << "lost without a trace: " << one.what;
  }
}

TEST(Freeze, APendingMaskAndUndeliveredEndsAreKept) {
  Place place;
  DW_NEEDS(place);
  const WholeRun whole = run_whole(place);
  bool mask_seen = false;
  bool end_seen = false;
  for (uint64_t k = 0; k < whole.handlers && !(mask_seen && end_seen); ++k) {
    std::string before;
    const auto frozen = frozen_at(place, k, &before);
    for (size_t i = 0; i < frozen->life.slots.size(); ++i) {
      if (!frozen->life.slots[i].masked) continue;
      mask_seen = true;
      FrozenActor changed = *frozen;
      changed.life.slots[i].masked = false;
      EXPECT_TRUE(before + rest_of(place, changed) != whole.text) << "the mask at " << k;
    }
    if (!frozen->life.generates.ended.empty()) {
      end_seen = true;
      FrozenActor changed = *frozen;
      changed.life.generates.ended.clear();
      EXPECT_TRUE(before + rest_of(place, changed) != whole.text) << "the end at " << k;
    }
  }
  EXPECT_TRUE(mask_seen);
  EXPECT_TRUE(end_seen);
}

TEST(Freeze, ClocksGoOnFromWhereTheyWere) {
  Place place;
  DW_NEEDS(place);
  std::string before;
  const auto frozen = frozen_at(place, 60, &before);
  frozen->life.draws.last_monotonic_ns = 7200'000'000'000;
  frozen->life.timers.at(0).remaining_ns = 1;  // the one of an hour
  Outbox outbox;
  const auto id = place.system().thaw("self", *frozen, nullptr, options_with(outbox));
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  ASSERT_TRUE(place.system().send(*id, bytes_of("time")).is_ok());
  ASSERT_TRUE(place.system().wait_idle(*id, kPatience).is_ok());
  EXPECT_NE(outbox.text().find(" time 1 0 "), std::string::npos) << outbox.text();
  EXPECT_NE(outbox.text().find(" timer 9 0 "), std::string::npos) << outbox.text();
  place.stop(*id);
}

TEST(Freeze, WhatDoesNotFitIsRefusedByName) {
  Place place;
  DW_NEEDS(place);
  std::string before;
  const auto frozen = frozen_at(place, 12, &before);
  const auto refusal = [&](const std::function<void(FrozenActor&, ActorOptions&)>& change) {
    FrozenActor changed = *frozen;
    Outbox outbox;
    ActorOptions options = options_with(outbox);
    change(changed, options);
    const auto id = place.system().thaw("self", changed, nullptr, options);
    EXPECT_FALSE(id.is_ok());
    return id.is_ok() ? "" : id.status().message();
  };
  const auto holds = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(
      holds(refusal([](auto& f, auto&) { f.identity.module_hash = "x"; }), "its module has the hash x"));
  EXPECT_TRUE(holds(refusal([](auto& f, auto&) { f.identity.abi = "9"; }), "guest ABI '9'"));
  EXPECT_TRUE(
      holds(refusal([](auto& f, auto&) { f.identity.model.model_fingerprint = "x"; }), "model fingerprint"));
  EXPECT_TRUE(
      holds(refusal([](auto& f, auto&) { f.identity.model.numerics_id = "other-1"; }), "numerics id"));
  EXPECT_TRUE(
      holds(refusal([](auto& f, auto&) { f.sessions.at(0).identity.kv_format = "kv-x"; }), "KV format"));
  EXPECT_TRUE(holds(refusal([](auto&, auto& o) { o.limits.max_sessions = 1; }), "3 sessions"));
  EXPECT_TRUE(holds(refusal([](auto&, auto& o) { o.limits.max_memory_bytes = 65536; }), "memory"));
  EXPECT_TRUE(holds(refusal([](auto& f, auto&) { f.setup.folders.push_back({"/data", false}); }), "'/data'"));
  EXPECT_TRUE(holds(refusal([](auto& f, auto&) { f.globals.pop_back(); }), "global"));
  EXPECT_TRUE(place.system().list().empty());
}

}  // namespace
}  // namespace driftwood::actor
