// Session calls: errors, limits, sharing, and what a step costs.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/allocation_counter.h"
#include "engine/fixture_models_test.h"

namespace driftwood::engine::testing {
namespace {

class EngineCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = fixture_model("llama3");
    if (path.empty()) GTEST_SKIP() << "no fixture model llama3: DRIFTWOOD_FIXTURE_MODELS is not set";
    model_ = load(path);
    reopen({});
  }
  void reopen(EngineOptions options) {
    opened_ = open(model_, {available_isas().back(), 1, options});
    ASSERT_NE(opened_.engine, nullptr);
  }
  Engine& engine() { return *opened_.engine; }
  Status append(SessionId session, std::vector<int32_t> ids) { return engine().append(session, ids); }

  std::shared_ptr<LoadedModel> model_;
  Opened opened_;
};

void expect_error(const Status& status, Code code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status.to_string();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TEST_F(EngineCalls, ErrorsNameWhatIsWrong) {
  const SessionId session = open_session(engine(), {8, {}});
  expect_error(engine().step(session), Code::kFailedPrecondition, "no token to compute");
  expect_error(engine().logits(session).status(), Code::kFailedPrecondition, "no logits");
  expect_error(engine().sample(session).status(), Code::kFailedPrecondition, "no logits");
  expect_error(append(session, {1, 320}), Code::kInvalidArgument, "token 1 has the id 320");
  expect_error(append(session, {-1}), Code::kInvalidArgument, "token 0 has the id -1");
  expect_error(append(session, {1, 2, 3, 4, 5, 6, 7, 8, 9}), Code::kOutOfRange, "at most 8 tokens");
  EXPECT_EQ(*engine().length(session), 0);
  expect_error(engine().truncate(session, 1), Code::kInvalidArgument, "can't be cut to 1");
  expect_error(engine().close(999), Code::kNotFound, "no session 999");
  expect_error(engine().open({100000, {}}).status(), Code::kInvalidArgument, "max_tokens");
  ASSERT_TRUE(engine().close(session).is_ok());
  expect_error(engine().step(session), Code::kNotFound, "no session");
}

TEST_F(EngineCalls, LengthsAndLogitsFollowTheTokens) {
  const SessionId session = open_session(engine());
  ASSERT_TRUE(append(session, {1, 2, 3}).is_ok());
  EXPECT_EQ(*engine().length(session), 3);
  EXPECT_EQ(*engine().computed(session), 0);
  ASSERT_TRUE(engine().step(session).is_ok());
  EXPECT_EQ(*engine().computed(session), 3);
  EXPECT_EQ(engine().logits(session)->size(), 320u);
  EXPECT_TRUE(engine().step(session).is_ok()) << "nothing pending, logits there";
  ASSERT_TRUE(append(session, {4}).is_ok());
  EXPECT_FALSE(engine().logits(session).is_ok()) << "not of the last token";
  ASSERT_TRUE(engine().truncate(session, 2).is_ok());
  EXPECT_EQ(*engine().computed(session), 2);
  EXPECT_FALSE(engine().step(session).is_ok());
  EXPECT_EQ(*engine().tokens(session), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(engine().stats().rows_computed, 3);
  EXPECT_EQ(engine().stats().rows_for_logits, 1);
}

TEST_F(EngineCalls, ABudgetThatIsUsedUpLeavesSessionsAsTheyWere) {
  EngineOptions options;
  options.kv_budget_bytes = 2 * engine().stats().kv_block_bytes;
  reopen(options);
  const SessionId a = open_session(engine());
  const SessionId b = open_session(engine());
  ASSERT_TRUE(append(a, std::vector<int32_t>(40, 7)).is_ok());
  ASSERT_TRUE(append(b, {1, 2, 3}).is_ok());
  ASSERT_TRUE(engine().step(a).is_ok());
  expect_error(engine().step(b), Code::kResourceExhausted, "KV budget");
  EXPECT_EQ(*engine().length(b), 3);
  EXPECT_EQ(*engine().computed(b), 0);
  EXPECT_EQ(engine().stats().kv_blocks_in_use, 2);
  ASSERT_TRUE(engine().close(a).is_ok());
  EXPECT_TRUE(engine().step(b).is_ok()) << "goes on once there is room";
}

TEST_F(EngineCalls, AForkSharesKvAndRekeysItsSampler) {
  SessionOptions options;
  options.sampling.temperature = 1.0f;
  options.sampling.seed = 11;
  const SessionId parent = open_session(engine(), options);
  ASSERT_TRUE(append(parent, std::vector<int32_t>(40, 9)).is_ok());
  ASSERT_TRUE(engine().step(parent).is_ok());
  const SessionId same = *engine().fork(parent, 0);
  const SessionId other = *engine().fork(parent, 1);
  const SessionId grandchild = *engine().fork(other, 1);
  EXPECT_EQ(engine().stats().kv_blocks_in_use, 2);
  EXPECT_EQ(engine().sampling(same)->stream, engine().sampling(parent)->stream);
  EXPECT_NE(engine().sampling(other)->stream, engine().sampling(parent)->stream);
  EXPECT_NE(engine().sampling(grandchild)->stream, engine().sampling(other)->stream);
  EXPECT_EQ(*engine().sample(same), *engine().sample(parent));
  for (SessionId id : {parent, same, other, grandchild}) ASSERT_TRUE(engine().close(id).is_ok());
  EXPECT_EQ(engine().stats().kv_blocks_in_use, 0);
}

TEST_F(EngineCalls, ASessionRefusesASecondCaller) {
  const SessionId session = open_session(engine());
  ASSERT_TRUE(append(session, {1, 2}).is_ok());
  Status inside;
  std::thread second;
  const LogitsSink sink = [&](int64_t, std::span<const float>) {
    if (second.joinable()) return;
    second = std::thread([&] { inside = engine().append(session, std::vector<int32_t>{1}); });
    second.join();
    second = std::thread([] {});
  };
  ASSERT_TRUE(engine().step(session, &sink).is_ok());
  if (second.joinable()) second.join();
  expect_error(inside, Code::kFailedPrecondition, "in use");
}

TEST_F(EngineCalls, ADecodeStepDoesNotAllocate) {
  const SessionId session = open_session(engine());
  ASSERT_TRUE(append(session, std::vector<int32_t>(30, 5)).is_ok());
  ASSERT_TRUE(engine().step(session).is_ok());
  int32_t token = *engine().sample(session);
  ASSERT_TRUE(engine().append(session, std::span(&token, 1)).is_ok());
  ASSERT_TRUE(engine().step(session).is_ok());
  const int64_t before = allocation_count();
  for (int i = 0; i < 100; ++i) {  // crosses block boundaries
    token = *engine().sample(session);
    ASSERT_TRUE(engine().append(session, std::span(&token, 1)).is_ok());
    ASSERT_TRUE(engine().step(session).is_ok());
  }
  EXPECT_EQ(allocation_count() - before, 0);
}

// A run is held open until the other callers are about to step; those then find a leader at work and queue. How
// soon a thread gets from "about to" into the queue is the machine's affair, so there are several attempts.
TEST_F(EngineCalls, SessionsThatStepTogetherShareRuns) {
  constexpr int kOthers = 3;
  constexpr int kAttempts = 50;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int64_t runs_before = engine().stats().graph_runs;
    std::atomic<int> about_to_step{0};
    std::atomic<int> failures{0};
    std::atomic<bool> held{false};
    const LogitsSink hold = [&](int64_t, std::span<const float>) {
      held.store(true);
      while (about_to_step.load() < kOthers) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + attempt));
    };
    const auto step_once = [&](int32_t token, const LogitsSink* sink) {
      const SessionId session = open_session(engine());
      failures += !engine().append(session, std::span(&token, 1)).is_ok();
      if (sink == nullptr) {
        while (!held.load()) std::this_thread::yield();
        about_to_step += 1;
      }
      failures += !engine().step(session, sink).is_ok();
      failures += !engine().close(session).is_ok();
    };
    std::vector<std::thread> callers;
    for (int k = 0; k < kOthers; ++k) callers.emplace_back([&, k] { step_once(k + 2, nullptr); });
    step_once(1, &hold);
    for (std::thread& caller : callers) caller.join();
    ASSERT_EQ(failures.load(), 0);
    if (engine().stats().graph_runs - runs_before < kOthers + 1) return;
  }
  FAIL() << "no two sessions ever shared a run";
}

}  // namespace
}  // namespace driftwood::engine::testing
