// The event loop on a fake engine: tokens, verdicts, turns, effects, messages, timers, life cycle.
#include <gtest/gtest.h>

#include <thread>

#include "actor/actors_for_test.h"
#include "actor/fake_engine_for_test.h"

namespace driftwood::actor {
namespace {

class EventLoopTest : public ::testing::Test {
 protected:
  std::unique_ptr<ActorSystem> make(int threads = 4) {
    return ActorSystem::create(shared_runtime(), &engine_, &shared_device(), {threads});
  }
  // What the engine draws by itself for a prompt.
  std::vector<int32_t> native(const std::vector<int32_t>& prompt, int count, uint64_t seed = 0) {
    engine::SessionOptions options;
    options.sampling.seed = seed;
    const engine::SessionId id = *engine_.open(options);
    EXPECT_TRUE(engine_.append(id, prompt).is_ok());
    std::vector<int32_t> ids;
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(engine_.step(id).is_ok());
      ids.push_back(*engine_.sample(id));
      EXPECT_TRUE(engine_.append(id, {&ids.back(), 1}).is_ok());
    }
    EXPECT_TRUE(engine_.close(id).is_ok());
    return ids;
  }
  std::vector<int32_t> verdict(const std::string& mode, Outbox& outbox) {
    const auto system = make();
    const auto id = system->spawn("v", guest("test_verdicts"), options_with(outbox, "mode=" + mode));
    EXPECT_TRUE(id.is_ok()) << id.status().message();
    EXPECT_TRUE(system->wait_idle(*id, kPatience).is_ok());
    return outbox.ids();
  }
  FakeEngine engine_;
};

TEST_F(EventLoopTest, TokensOfAGenerateAreTheEnginesOwn) {
  const auto system = make();
  Outbox outbox;
  const auto id = system->spawn("t", guest("tokens"), options_with(outbox, "max_tokens=10\nseed=5"));
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  ASSERT_TRUE(system->send(*id, bytes_of({1, 2, 3})).is_ok());
  ASSERT_TRUE(system->wait_idle(*id, kPatience).is_ok());
  EXPECT_EQ(outbox.ids(), native({1, 2, 3}, 10, 5));
  std::vector<uint64_t> expected(10);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = i + 1;
  EXPECT_EQ(outbox.sequences(), expected);
  const auto status = system->status(*id);
  ASSERT_TRUE(status.is_ok());
  EXPECT_EQ(status->state, ActorState::kIdle);
  EXPECT_EQ(status->tokens_generated, 10);
  EXPECT_EQ(status->tokens_appended, 3);
  EXPECT_EQ(status->sessions, 0);
}

TEST_F(EventLoopTest, SeveralGeneratesTakeTurns) {
  Outbox outbox;
  const std::vector<int32_t> ids = verdict("two", outbox);
  const std::vector<int32_t> plain = native({1, 2, 3}, 8);
  std::vector<int32_t> expected;
  for (size_t i = 0; i < 8; ++i) {
    if (i == 7) {  // the first one's end is told before the second's last token
      expected.insert(expected.end(), {1, plain[i], -1, 0, 8, 11, 2, plain[i], -1, 0, 8, 11});
    } else {
      expected.insert(expected.end(), {1, plain[i], 2, plain[i]});
    }
  }
  EXPECT_EQ(ids, expected);
}

TEST_F(EventLoopTest, TwoActorsGenerateWhatTheyGenerateAlone) {
  const auto system = make();
  Outbox first, second;
  const auto a = system->spawn("a", guest("tokens"), options_with(first, "max_tokens=40\nseed=1"));
  const auto b = system->spawn("b", guest("tokens"), options_with(second, "max_tokens=40\nseed=2"));
  ASSERT_TRUE(system->send(*a, bytes_of({1, 2, 3})).is_ok());
  ASSERT_TRUE(system->send(*b, bytes_of({4, 5})).is_ok());
  ASSERT_TRUE(system->wait_idle(*a, kPatience).is_ok());
  ASSERT_TRUE(system->wait_idle(*b, kPatience).is_ok());
  EXPECT_EQ(first.ids(), native({1, 2, 3}, 40, 1));
  EXPECT_EQ(second.ids(), native({4, 5}, 40, 2));
}

// Lines of verdicts.c: tokens, then -1, reason, tokens appended, session length.
TEST_F(EventLoopTest, VerdictsSteerAGenerate) {
  const std::vector<int32_t> plain = native({1, 2, 3}, 8);
  const auto line = [&](int tokens, std::vector<int32_t> tail) {
    std::vector<int32_t> all(plain.begin(), plain.begin() + tokens);
    all.insert(all.end(), tail.begin(), tail.end());
    return all;
  };
  const std::map<std::string, std::vector<int32_t>> expected = {
      {"continue", line(8, {-1, 0, 8, 11})}, {"stop", line(3, {-1, 2, 3, 6})},
      {"drop", line(3, {-1, 2, 2, 5})},      {"cancel", line(3, {-1, 3, 2, 5})},
      {"fork", line(8, {-1, 0, 8, 11})},
  };
  for (const auto& [mode, ids] : expected) {
    Outbox outbox;
    EXPECT_EQ(verdict(mode, outbox), ids) << mode;
    EXPECT_EQ(outbox.log_text(), "") << mode;
  }
}

TEST_F(EventLoopTest, AForcedTokenTakesTheDrawnOnesPlace) {
  Outbox outbox;
  const std::vector<int32_t> ids = verdict("replace", outbox);
  ASSERT_EQ(ids.size(), 12u) << outbox.log_text();
  std::vector<int32_t> prompt = {1, 2, 3};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(ids[i], native(prompt, 1)[0]);
    prompt.push_back(42);
  }
}

TEST_F(EventLoopTest, AMaskHoldsForOneDraw) {
  Outbox outbox;
  const std::vector<int32_t> ids = verdict("mask_first", outbox);
  ASSERT_EQ(ids.size(), 12u) << outbox.log_text();
  EXPECT_EQ(ids[0], 70);
  EXPECT_EQ(ids[1], native({1, 2, 3, 70}, 1)[0]);
}

TEST_F(EventLoopTest, AMaskThatAllowsNothingEndsTheGenerateOnly) {
  Outbox outbox;
  EXPECT_EQ(verdict("mask_nothing", outbox), (std::vector<int32_t>{-1, 6, 0, 3}));
}

TEST_F(EventLoopTest, AFullSessionSaysSo) {
  Outbox outbox;
  const std::vector<int32_t> ids = verdict("full", outbox);
  ASSERT_EQ(ids.size(), FakeEngine::kContext - 3 + 4);
  EXPECT_EQ((std::vector<int32_t>{ids.end() - 4, ids.end()}), (std::vector<int32_t>{-1, 4, 61, 64}));
}

TEST_F(EventLoopTest, ATagCanBeUsedAgainWithinTheHandlerThatCancelledIt) {
  Outbox outbox;
  const std::vector<int32_t> plain = native({1, 2, 3}, 8);
  std::vector<int32_t> expected(plain.begin(), plain.begin() + 3);
  expected.insert(expected.end(), {-1, 3, 2, -5});  // its session is closed
  expected.insert(expected.end(), plain.begin(), plain.end());
  expected.insert(expected.end(), {-1, 0, 8, 11});
  EXPECT_EQ(verdict("cancel_again", outbox), expected);
}

TEST_F(EventLoopTest, TheTokenLimitEndsAGenerateWithItsReason) {
  const auto system = make();
  Outbox outbox;
  ActorOptions options = options_with(outbox, "mode=continue");
  options.limits.max_tokens = 6;  // three of the prompt
  const auto id = system->spawn("v", guest("test_verdicts"), std::move(options));
  ASSERT_TRUE(system->wait_idle(*id, kPatience).is_ok());
  const std::vector<int32_t> ids = outbox.ids();
  ASSERT_EQ(ids.size(), 7u);
  EXPECT_EQ((std::vector<int32_t>{ids.end() - 4, ids.end()}), (std::vector<int32_t>{-1, 5, 3, 6}));
}

constexpr const char* kEcho = R"((module
  (import "driftwood" "message_read" (func $read (param i32 i32) (result i32)))
  (import "driftwood" "reply" (func $reply (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "dw_on_message") (param i64 i32)
    (drop (call $read (i32.const 0) (local.get 1)))
    (drop (call $reply (i32.const 0) (local.get 1))))))";

// Passes what it gets on to the actor "echo" and emits what comes back.
constexpr const char* kRelay = R"((module
  (import "driftwood" "message_read" (func $read (param i32 i32) (result i32)))
  (import "driftwood" "send" (func $send (param i32 i32 i32 i32) (result i32)))
  (import "driftwood" "emit" (func $emit (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 1000) "echo")
  (func (export "dw_on_message") (param i64 i32)
    (drop (call $read (i32.const 0) (local.get 1)))
    (if (i64.eqz (local.get 0))
      (then (drop (call $send (i32.const 1000) (i32.const 4) (i32.const 0) (local.get 1))))
      (else (drop (call $emit (i32.const 0) (local.get 1))))))))";

TEST_F(EventLoopTest, MessagesGoFromActorToActorAndBack) {
  const auto system = make();
  Outbox echo_box, relay_box;
  const auto echo = system->spawn("echo", module_of(kEcho), options_with(echo_box));
  const auto relay = system->spawn("relay", module_of(kRelay), options_with(relay_box));
  ASSERT_TRUE(echo.is_ok() && relay.is_ok());
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(system->send(*relay, bytes_of("m" + std::to_string(i) + ";")).is_ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(system->wait_idle(*relay, kPatience).is_ok());
    ASSERT_TRUE(system->wait_idle(*echo, kPatience).is_ok());
  }
  std::string expected;
  for (int i = 0; i < 50; ++i) expected += "m" + std::to_string(i) + ";";
  EXPECT_EQ(relay_box.text(), expected);
  ASSERT_TRUE(system->send(*echo, bytes_of("direct")).is_ok());
  ASSERT_TRUE(system->wait_idle(*echo, kPatience).is_ok());
  EXPECT_EQ(echo_box.text(), "direct");
  EXPECT_EQ(echo_box.kinds(), std::vector<OutputKind>{OutputKind::kReply});
  EXPECT_EQ(echo_box.sequences(), std::vector<uint64_t>{51});  // 50 went to the relay
}

TEST_F(EventLoopTest, NamesMailboxesAndUnknownActors) {
  const auto system = make();
  Outbox outbox;
  ActorOptions options = options_with(outbox);
  options.limits.max_message_bytes = 8;
  const auto id = system->spawn("echo", module_of(kEcho), options);
  ASSERT_TRUE(id.is_ok());
  EXPECT_EQ(system->spawn("echo", module_of(kEcho), options).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(system->send(*id, bytes_of("nine bytes")).code(), Code::kResourceExhausted);
  EXPECT_EQ(system->send(999, bytes_of("x")).code(), Code::kNotFound);
  EXPECT_EQ(*system->find("echo"), *id);
  ASSERT_TRUE(system->stop(*id).is_ok());
  EXPECT_EQ(system->status(*id)->state, ActorState::kStopped);
  EXPECT_EQ(system->find("echo").status().code(), Code::kNotFound);
  EXPECT_EQ(system->send(*id, bytes_of("x")).code(), Code::kNotFound);
  EXPECT_TRUE(system->spawn("echo", module_of(kEcho), options).is_ok());
  EXPECT_EQ(system->spawn("none", module_of("(module (memory (export \"memory\") 1))"), {}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(system->spawn("bad", module_of("(module (func (export \"dw_on_timer\")))"), {}).status().code(),
            Code::kInvalidArgument);
}

constexpr const char* kTimers = R"((module
  (import "driftwood" "timer_set" (func $set (param i64 i64) (result i32)))
  (import "driftwood" "timer_cancel" (func $cancel (param i64) (result i32)))
  (import "driftwood" "emit" (func $emit (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "dw_on_start")
    (drop (call $set (i64.const 60000000) (i64.const 3)))
    (drop (call $set (i64.const 20000000) (i64.const 1)))
    (drop (call $set (i64.const 40000000) (i64.const 2)))
    (drop (call $set (i64.const 10000000) (i64.const 9)))
    (drop (call $cancel (i64.const 9))))
  (func (export "dw_on_timer") (param i64)
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (i32.wrap_i64 (local.get 0))))
    (drop (call $emit (i32.const 0) (i32.const 1))))))";

TEST_F(EventLoopTest, TimersFireInOrderAndCancelledOnesDoNot) {
  const auto system = make(1);
  Outbox outbox;
  const auto id = system->spawn("clock", module_of(kTimers), options_with(outbox));
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (outbox.text().size() < 3 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(outbox.text(), "123");
}

// Any message sets a timer of 50 us that says so.
constexpr const char* kTicker = R"((module
  (import "driftwood" "timer_set" (func $set (param i64 i64) (result i32)))
  (import "driftwood" "emit" (func $emit (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "dw_on_message") (param i64 i32)
    (drop (call $set (i64.const 50000) (i64.const 1))))
  (func (export "dw_on_timer") (param i64) (drop (call $emit (i32.const 0) (i32.const 1))))))";

// An alarm that rings while a freeze holds the actor goes unheard, and nothing else wakes it afterwards.
TEST_F(EventLoopTest, NoAlarmIsLostToAFreeze) {
  const auto system = make(4);
  Outbox outbox;
  const auto id = system->spawn("ticker", module_of(kTicker), options_with(outbox));
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  for (size_t round = 0; round < 2000; ++round) {
    ASSERT_TRUE(system->send(*id, bytes_of("x")).is_ok());
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(round % 91);
    while (std::chrono::steady_clock::now() < until) {
    }
    ASSERT_TRUE(system->freeze(*id).is_ok());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (outbox.text().size() <= round) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "round " << round;
      std::this_thread::yield();
    }
  }
}

TEST_F(EventLoopTest, ManyActorsShareOneThread) {
  const auto system = make(1);
  std::vector<std::unique_ptr<Outbox>> boxes;
  std::vector<ActorId> ids;
  for (int i = 0; i < 20; ++i) {
    boxes.push_back(std::make_unique<Outbox>());
    const std::string config = "max_tokens=20\nseed=" + std::to_string(i);
    ids.push_back(
        *system->spawn("t" + std::to_string(i), guest("tokens"), options_with(*boxes.back(), config)));
    ASSERT_TRUE(system->send(ids.back(), bytes_of({1, 2, 3})).is_ok());
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(system->wait_idle(ids[i], kPatience).is_ok());
    EXPECT_EQ(boxes[i]->ids(), native({1, 2, 3}, 20, i));
  }
}

TEST_F(EventLoopTest, ACommandRunsItsMainAndEnds) {
  const auto system = ActorSystem::create(shared_runtime(), nullptr, nullptr, {2});
  Outbox outbox;
  const auto id = system->spawn("greeter", guest("hello"), options_with(outbox));
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  ASSERT_TRUE(system->wait_exit(*id, kPatience).is_ok());
  EXPECT_EQ(outbox.text(), "Hello from greeter\n(no model here)\n");
  EXPECT_EQ(system->status(*id)->state, ActorState::kExited);
  EXPECT_EQ(system->status(*id)->exit_code, 0);
}

}  // namespace
}  // namespace driftwood::actor
