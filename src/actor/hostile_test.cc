// Hostile guests end with a message that names actor and cause, or get an error code; a witness beside them
// generates the same tokens as alone; nothing of them stays.
#include <gtest/gtest.h>

#include <thread>

#include "actor/actors_for_test.h"
#include "actor/fake_engine_for_test.h"
#include "region/region.h"

namespace driftwood::actor {
namespace {

struct Case {
  const char* mode;
  ActorState state;
  Code code;
  std::vector<std::string> message;  // parts of the status
  std::string output;
};

class HostileTest : public ::testing::Test {
 protected:
  HostileTest() : system_(ActorSystem::create(shared_runtime(), &engine_, &shared_device(), {4})) {}

  ActorOptions hostile_options(Outbox& outbox, const std::string& mode) {
    ActorOptions options = options_with(outbox, "mode=" + mode);
    options.limits.handler_deadline = std::chrono::milliseconds(100);
    options.limits.max_memory_bytes = 4 << 20;
    return options;
  }
  // The tokens a harmless actor emits while `during` runs.
  template <typename F>
  std::vector<int32_t> witnessed(F during) {
    Outbox outbox;
    const auto id = system_->spawn("witness", guest("tokens"), options_with(outbox, "max_tokens=50\nseed=9"));
    EXPECT_TRUE(id.is_ok()) << id.status().message();
    EXPECT_TRUE(system_->send(*id, bytes_of({7, 8, 9})).is_ok());
    during();
    EXPECT_TRUE(system_->wait_idle(*id, kPatience).is_ok());
    EXPECT_TRUE(system_->stop(*id).is_ok());
    EXPECT_EQ(outbox.log_text(), "");
    return outbox.ids();
  }
  FakeEngine engine_;
  std::unique_ptr<ActorSystem> system_;
};

std::vector<Case> cases() {
  const ActorState trapped = ActorState::kTrapped;
  const auto deadline = [&](const char* mode, const char* handler) {
    return Case{mode, trapped, Code::kDeadlineExceeded, {"'h'", handler, "deadline"}, ""};
  };
  return {
      deadline("loop_start", "dw_on_start"),
      deadline("loop_message", "dw_on_message"),
      deadline("loop_token", "dw_on_token"),
      deadline("loop_done", "dw_on_done"),
      deadline("loop_timer", "dw_on_timer"),
      {"recurse", trapped, Code::kAborted, {"'h'", "dw_on_start", "out of bounds", "dive"}, ""},
      {"recurse_lean", trapped, Code::kAborted, {"'h'", "dw_on_start", "stack", "dive_lean"}, ""},
      {"trap_start", trapped, Code::kAborted, {"'h'", "dw_on_start", "unreachable"}, ""},
      {"trap_message", trapped, Code::kAborted, {"'h'", "dw_on_message", "unreachable"}, ""},
      {"trap_token", trapped, Code::kAborted, {"'h'", "dw_on_token", "unreachable"}, ""},
      {"divide", trapped, Code::kAborted, {"'h'", "dw_on_start", "division by zero"}, ""},
      {"wild_store", trapped, Code::kAborted, {"'h'", "dw_on_start", "out of bounds"}, ""},
      {"emit_then_trap", trapped, Code::kAborted, {"'h'", "unreachable"}, ""},
      {"grow", ActorState::kIdle, Code::kOk, {}, "full"},
      {"exit", ActorState::kExited, Code::kOk, {}, "bye"},
      {"bad_verdict", ActorState::kIdle, Code::kOk, {}, "done=6;"},
      {"replace_nothing", ActorState::kIdle, Code::kOk, {}, "done=6;"},
      {"many_sessions", ActorState::kIdle, Code::kOk, {}, "sessions=16;last=-8;"},
      {"wrong_order",
       ActorState::kIdle,
       Code::kOk,
       {},
       "generate_without_session=-5;step_without_session=-5;fork_without_session=-5;close_without_session=-5;"
       "message_outside=-9;reply_outside=-9;cancel_nothing=-5;send_nobody=-5;send_to_nobody=-5;"
       "timer_cancel_nothing=-5;timer_negative=-3;clock_unknown=-3;log_level=-3;"},
      {"wrong_session_calls",
       ActorState::kIdle,
       Code::kOk,
       {},
       "generate_empty=-9;step_empty=-9;sample_before_step=-9;logits_before_step=-9;truncate_beyond=-11;"
       "append_unknown_id=-3;append=0;force_outside=-9;run_ahead=-12;struct_size=-3;generate=0;generate_"
       "twice=-9;"
       "append_generating=-9;close_generating=-9;cancel=0;close=0;close_twice=-5;done=3;"},
  };
}

TEST_F(HostileTest, EachEndsByNameOrGetsACodeAndTheWitnessGoesOn) {
  const std::vector<int32_t> alone = witnessed([] {});
  ASSERT_EQ(alone.size(), 50u);
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.mode);
    Outbox outbox;
    ActorStatus status;
    const std::vector<int32_t> beside = witnessed([&] {
      const auto id = system_->spawn("h", guest("hostile"), hostile_options(outbox, one.mode));
      ASSERT_TRUE(id.is_ok()) << id.status().message();
      static_cast<void>(system_->send(*id, bytes_of("x")));  // it may have ended already
      static_cast<void>(system_->wait_idle(*id, kPatience));
      if (one.state == ActorState::kTrapped) static_cast<void>(system_->wait_exit(*id, kPatience));
      status = *system_->status(*id);
      EXPECT_TRUE(system_->stop(*id).is_ok());
    });
    EXPECT_EQ(beside, alone);
    EXPECT_EQ(status.state, one.state) << status.status.message();
    EXPECT_EQ(status.status.code(), one.code) << status.status.message();
    for (const std::string& part : one.message) {
      EXPECT_NE(status.status.message().find(part), std::string::npos) << status.status.message();
    }
    EXPECT_EQ(outbox.text(), one.output) << outbox.log_text();
    EXPECT_EQ(engine_.open_sessions(), 0u);
  }
}

TEST_F(HostileTest, AFloodIsCutAtTheBudget) {
  Outbox outbox;
  ActorOptions options = hostile_options(outbox, "flood");
  options.limits.max_effect_bytes = 64 << 10;
  const auto id = system_->spawn("h", guest("hostile"), options);
  ASSERT_TRUE(system_->wait_idle(*id, kPatience).is_ok());
  const std::string text = outbox.text();
  EXPECT_LE(text.size(), 64u << 10);
  EXPECT_EQ(text.substr(text.size() - 9), "flood=-8;");
}

TEST_F(HostileTest, AFullMailboxRefuses) {
  Outbox outbox;
  ActorOptions options = hostile_options(outbox, "loop_start");
  options.limits.max_mailbox = 3;
  options.limits.handler_deadline = std::chrono::milliseconds(0);
  const auto id = system_->spawn("h", guest("hostile"), options);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(system_->send(*id, bytes_of("x")).is_ok());
  EXPECT_EQ(system_->send(*id, bytes_of("x")).code(), Code::kResourceExhausted);
}

TEST_F(HostileTest, StopBreaksAnEndlessHandlerOff) {
  Outbox outbox;
  ActorOptions options = hostile_options(outbox, "loop_start");
  options.limits.handler_deadline = std::chrono::milliseconds(0);
  const auto id = system_->spawn("h", guest("hostile"), options);
  ASSERT_TRUE(id.is_ok());
  while (outbox.log_text().find("spinning") == std::string::npos) std::this_thread::yield();
  EXPECT_TRUE(system_->stop(*id).is_ok());
  EXPECT_EQ(system_->status(*id)->state, ActorState::kStopped);
  EXPECT_EQ(outbox.text(), "");
}

TEST_F(HostileTest, NothingOfTwoThousandActorsStays) {
  const auto round = [&](int count) {
    for (int i = 0; i < count; ++i) {
      Outbox outbox;
      const bool bad = i % 4 == 3;
      const auto id = bad ? system_->spawn("x", guest("hostile"), hostile_options(outbox, "trap_token"))
                          : system_->spawn("x", guest("tokens"), options_with(outbox, "max_tokens=2"));
      ASSERT_TRUE(id.is_ok()) << id.status().message();
      if (!bad) {
        ASSERT_TRUE(system_->send(*id, bytes_of({1, 2})).is_ok());
        ASSERT_TRUE(system_->wait_idle(*id, kPatience).is_ok());
        ASSERT_EQ(outbox.ids().size(), 2u);
        ASSERT_TRUE(system_->stop(*id).is_ok());
      } else {
        ASSERT_FALSE(system_->wait_exit(*id, kPatience).is_ok());
      }
    }
  };
  round(1200);  // allocators and the list of remembered ends reach their steady size
  const size_t before = region::process_residency()->rss_bytes;
  round(2000);
  const size_t after = region::process_residency()->rss_bytes;
  EXPECT_LE(after, before + (2u << 20)) << before << " -> " << after;
  EXPECT_EQ(engine_.open_sessions(), 0u);
  EXPECT_TRUE(system_->list().empty());
}

}  // namespace
}  // namespace driftwood::actor
