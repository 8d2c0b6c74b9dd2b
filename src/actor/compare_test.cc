// The comparison that proofs of continuity rest on finds one changed bit anywhere.
#include "actor/compare.h"

#include <gtest/gtest.h>

#include <functional>

#include "actor/scenario_for_test.h"

namespace driftwood::actor {
namespace {

TEST(Compare, FindsOneChangedBitAnywhereAndNamesThePlace) {
  Place place;
  if (!place.ready()) GTEST_SKIP() << "no fixture models: DRIFTWOOD_FIXTURE_MODELS is not set";
  std::string text;
  const auto frozen = frozen_at(place, 14, &text);
  ASSERT_NE(frozen, nullptr);
  EXPECT_EQ(*first_difference(*frozen, *frozen), "");
  std::vector<uint8_t> bytes;  // of what a case changes
  struct Case {
    const char* found;
    std::function<void(FrozenActor&)> change;
  };
  const Case cases[] = {
      {"memory byte ",
       [&](FrozenActor& f) {
         wasm::MemoryPatch& patch = f.memory.patches.back();
         bytes.assign(patch.bytes.begin(), patch.bytes.end());
         bytes.back() ^= 0x80;
         patch.bytes = bytes;
       }},
      {"global 0", [](FrozenActor& f) { f.globals.at(0).bits ^= 1; }},
      {"session 1, KV block 0, byte 0",
       [&](FrozenActor& f) {
         auto& block = f.sessions.at(1).kv_blocks.at(0);
         bytes.assign(block.begin(), block.end());
         bytes.at(0) ^= 1;
         block = bytes;
       }},
      {"session 0, token 2", [](FrozenActor& f) { f.sessions.at(0).tokens.at(2) ^= 1; }},
      {"session 0, computed tokens", [](FrozenActor& f) { --f.sessions.at(0).computed; }},
      {"session 0, sampler parameters", [](FrozenActor& f) { f.sessions.at(0).sampling.seed ^= 1; }},
      {"mailbox", [](FrozenActor& f) { f.life.mailbox.push_back({}); }},
      {"timers", [](FrozenActor& f) { f.life.timers.at(0).tag ^= 1; }},
      {"generates", [](FrozenActor& f) { ++f.life.generates.running.at(0).produced; }},
      {"random numbers", [](FrozenActor& f) { ++f.life.draws.random_words; }},
      {"last error", [](FrozenActor& f) { f.life.last_error += "x"; }},
      {"session handles", [](FrozenActor& f) { ++f.life.slots.at(0).generation; }},
      {"configuration", [](FrozenActor& f) { f.setup.config.at(0) ^= 1; }},
      {"module", [](FrozenActor& f) { f.identity.module_hash += "x"; }},
      {"forks", [](FrozenActor& f) { f.life.forks.push_back({1, 2}); }},
  };
  for (const Case& one : cases) {
    FrozenActor changed = *frozen;
    one.change(changed);
    const auto found = first_difference(*frozen, changed);
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    EXPECT_TRUE(found->starts_with(one.found)) << *found << " for " << one.found;
  }
}

}  // namespace
}  // namespace driftwood::actor
