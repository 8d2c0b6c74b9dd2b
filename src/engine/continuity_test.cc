// The continuity check itself: it passes on an engine that keeps its word, and sees what does not.
#include "engine/continuity.h"

#include <gtest/gtest.h>

#include "engine/fixture_models_test.h"
#include "engine/kv_file_for_test.h"

namespace driftwood::engine::testing {
namespace {

std::string fastest() { return available_isas().back(); }

ContinuityOptions options_for(std::vector<int32_t> prompt, int64_t boundaries, float temperature) {
  ContinuityOptions options;
  options.prompt = std::move(prompt);
  options.boundaries = boundaries;
  options.session.max_tokens = 200;
  options.session.sampling.temperature = temperature;
  options.session.sampling.top_p = 0.95f;
  options.session.sampling.seed = 12;
  return options;
}

// KV goes to a file behind other bytes, and is mapped; what the file has past the tokens is nobody's.
ContinuityWay from_a_file(Engine* elsewhere) {
  return {"from a file", false, [elsewhere](Engine& engine, SessionId warm) -> Result<PlacedSession> {
            DW_ASSIGN_OR_RETURN(FrozenSession frozen, engine.freeze(warm));
            fill_past_tokens(elsewhere->model(), &frozen);
            DW_ASSIGN_OR_RETURN(const FrozenSession filed, move_kv_to_file(std::move(frozen), 65536));
            DW_ASSIGN_OR_RETURN(const SessionId session, elsewhere->thaw(filed));
            return PlacedSession{elsewhere, session};
          }};
}

void expect_continuous(const std::string& path, std::vector<int32_t> prompt, int64_t boundaries) {
  const auto model = load(path);
  const Opened here = open(model, {fastest(), 2, {}});
  const Opened elsewhere = open(model, {fastest(), 1, {}});
  for (float temperature : {0.0f, 0.8f}) {
    const ContinuityWay ways[] = {cold_prefill(), forked(), thawed_in(elsewhere.engine.get()),
                                  from_a_file(elsewhere.engine.get()), from_a_file(here.engine.get())};
    const auto report = verify_continuity(*here.engine, ways, options_for(prompt, boundaries, temperature));
    ASSERT_TRUE(report.is_ok()) << report.status().message();
    EXPECT_TRUE(report->equal()) << report->first_difference;
    EXPECT_EQ(report->ways, 6);
    EXPECT_EQ(report->boundaries, boundaries);
    EXPECT_EQ(report->comparisons, boundaries * 5 * 2);
    EXPECT_EQ(report->tokens_recomputed, 0);
  }
  for (Engine* engine : {here.engine.get(), elsewhere.engine.get()}) {
    EXPECT_EQ(engine->stats().kv_blocks_in_use, 0);
    EXPECT_EQ(engine->stats().kv_blocks_mapped, 0);
  }
}

TEST(Continuity, ColdWarmForkedAndThawedAreEqual) {
  DW_FIXTURE_OR_SKIP(path, "llama3");
  expect_continuous(path, {1, 2, 3}, 64);
}

TEST(Continuity, OnTheRealModel) {
  DW_SMOLLM2_OR_SKIP(path);
  expect_continuous(path, {1, 9690, 198, 2683, 359, 253}, 6);
}

// A way that changes the sampler, one that changes a token, one that computes everything again.
TEST(Continuity, SeesAPlantedDifference) {
  DW_FIXTURE_OR_SKIP(path, "llama3");
  const auto model = load(path);
  const Opened here = open(model, {fastest(), 2, {}});
  const auto check = [&](const ContinuityWay& way) {
    return *verify_continuity(*here.engine, {&way, 1}, options_for({1, 2, 3}, 4, 0.8f));
  };
  const ContinuityWay rekeyed{"rekeyed", false, [](Engine& engine, SessionId warm) -> Result<PlacedSession> {
                                DW_ASSIGN_OR_RETURN(const SessionId session, engine.fork(warm, 5));
                                return PlacedSession{&engine, session};
                              }};
  EXPECT_EQ(check(rekeyed).first_difference, "rekeyed, boundary 0 (3 tokens): sampler parameters");

  const ContinuityWay altered{"altered", false, [](Engine& engine, SessionId warm) -> Result<PlacedSession> {
                                DW_ASSIGN_OR_RETURN(FrozenSession frozen, engine.freeze(warm));
                                const auto bytes = std::make_shared<std::vector<uint8_t>>(
                                    frozen.kv_blocks[0].begin(), frozen.kv_blocks[0].end());
                                (*bytes)[2] ^= 1;  // token 1 of the first row of K
                                frozen.kv_blocks[0] = *bytes;
                                frozen.kv_owner = bytes;
                                DW_ASSIGN_OR_RETURN(const SessionId session, engine.thaw(frozen));
                                return PlacedSession{&engine, session};
                              }};
  EXPECT_EQ(check(altered).first_difference, "altered, boundary 0 (3 tokens): KV block 0, byte 2");

  ContinuityWay again = cold_prefill();
  again.computes_all = false;
  const ContinuityReport report = check(again);
  EXPECT_EQ(report.first_difference, "");
  EXPECT_EQ(report.tokens_recomputed, 3 + 4 + 5 + 6);
  EXPECT_FALSE(report.equal());
  EXPECT_EQ(here.engine->stats().kv_blocks_in_use, 0);
}

TEST(Continuity, RefusesNothingToCheck) {
  DW_FIXTURE_OR_SKIP(path, "llama3");
  const Opened here = open(load(path), {fastest(), 1, {}});
  EXPECT_EQ(verify_continuity(*here.engine, {}, options_for({}, 4, 0)).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(verify_continuity(*here.engine, {}, options_for({1}, 0, 0)).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace driftwood::engine::testing
