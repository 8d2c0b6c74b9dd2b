// Guests that misbehave: each ends alone, in bounded time, with a message that says why.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "wasm/engine.h"
#include "wasm/guest_for_test.h"

namespace driftwood::wasm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kHostile[] = R"((module
  (memory (export "memory") 1)
  (table 4 funcref)
  (type $nullary (func))
  (func (export "spin") (loop (br 0)))
  (func (export "work") (param i32) (result i32) (local i32)
    (loop (local.set 1 (i32.add (local.get 1) (i32.const 3)))
          (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func $deep (export "deep") (param i64) (result i64)
    (i64.add (i64.const 1) (call $deep (i64.add (local.get 0) (i64.const 1)))))
  (func $inner (param i32) (result i32) (i32.load (local.get 0)))
  (func $load_at (export "load_at") (param i32) (result i32) (call $inner (local.get 0)))
  (func (export "load_far") (result i32) (i32.load offset=4294967295 (i32.const -1)))
  (func (export "stop") unreachable)
  (func (export "divide") (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
  (func (export "call_null") (call_indirect (type $nullary) (i32.const 2)))
  (func (export "call_outside") (call_indirect (type $nullary) (i32.const 100)))
  (func (export "eat_memory") (result i32)
    (loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (memory.size))
  (func (export "eat_at_once") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "eat_table") (result i32)
    (loop (br_if 0 (i32.ne (table.grow (ref.null func) (i32.const 1000)) (i32.const -1))))
    (table.size))
  (func (export "fill_all") (memory.fill (i32.const 0) (i32.const 1) (i32.const -1)))))";

std::unique_ptr<Instance> hostile(InstanceOptions options = {}) {
  static const std::shared_ptr<Module> module = std::move(load_text(kHostile)).value();
  return std::move(shared_runtime().instantiate(module, {}, std::move(options))).value();
}

void expect_unharmed(Instance& other) {
  const uint64_t args[] = {1000};
  auto result = other.call("work", args);
  ASSERT_TRUE(result.is_ok()) << result.status().to_string();
  EXPECT_EQ(result->at(0), 3000u);
}

TEST(Hostile, AnEndlessLoopEndsAtItsDeadlineAndNobodyElseDoes) {
  auto other = hostile();
  InstanceOptions options;
  options.actor_name = "spinner";
  options.call_deadline = milliseconds(50);
  auto guest = hostile(options);
  const auto begin = steady_clock::now();
  const Status status = guest->call("spin", {}).status();
  const auto took = steady_clock::now() - begin;
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.to_string();
  EXPECT_TRUE(mentions(status, "'spinner'") && mentions(status, "'spin'") && mentions(status, "50 ms"))
      << status.message();
  EXPECT_GE(took, milliseconds(50));
  EXPECT_LT(took, milliseconds(5000));
  EXPECT_FALSE(guest->alive());
  EXPECT_EQ(guest->call("work", std::vector<uint64_t>{1}).status().code(), Code::kFailedPrecondition);
  expect_unharmed(*other);
}

TEST(Hostile, TheDeadlineIsPerCall) {
  InstanceOptions options;
  options.call_deadline = milliseconds(60);
  auto guest = hostile(options);
  const auto begin = steady_clock::now();
  const uint64_t args[] = {100000};
  while (steady_clock::now() - begin < milliseconds(300)) {
    auto result = guest->call("work", args);
    ASSERT_TRUE(result.is_ok()) << result.status().to_string();
  }
}

TEST(Hostile, AnEndlessStartFunctionEndsAtTheDeadline) {
  InstanceOptions options;
  options.call_deadline = milliseconds(50);
  auto in_start = instance_of(R"((module (func $f (loop (br 0))) (start $f)))", options);
  EXPECT_EQ(in_start.status().code(), Code::kDeadlineExceeded) << in_start.status().to_string();
  auto in_initialize = instance_of(R"((module (func (export "_initialize") (loop (br 0)))))", options);
  EXPECT_EQ(in_initialize.status().code(), Code::kDeadlineExceeded) << in_initialize.status().to_string();
}

TEST(Hostile, AnInterruptFromAnotherThreadEndsACallWithoutDeadline) {
  InstanceOptions options;
  options.call_deadline = milliseconds(0);
  auto guest = hostile(options);
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(30));
    guest->interrupt();
  });
  const Status status = guest->call("spin", {}).status();
  killer.join();
  EXPECT_EQ(status.code(), Code::kCancelled) << status.to_string();
  auto idle = hostile();
  idle->interrupt();
  EXPECT_EQ(idle->call("spin", {}).status().code(), Code::kCancelled);
  EXPECT_FALSE(idle->alive());
}

TEST(Hostile, DeepRecursionOverflowsTheGuestsStackOnly) {
  auto other = hostile();
  for (int i = 0; i < 3; ++i) {
    auto guest = hostile();
    const Status status = guest->call("deep", std::vector<uint64_t>{0}).status();
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_TRUE(mentions(status, "stack overflow")) << status.message();
    EXPECT_TRUE(mentions(status, "deep")) << status.message();
    EXPECT_LT(status.message().size(), 1000u);
  }
  expect_unharmed(*other);
}

TEST(Hostile, TrapsSayWhatHappenedAndWhere) {
  struct Case {
    const char* name;
    std::vector<uint64_t> args;
    const char* cause;
  };
  const Case cases[] = {
      {"stop", {}, "unreachable"},
      {"divide", {0}, "division by zero"},
      {"call_null", {}, "indirect call to null"},
      {"call_outside", {}, "out of bounds table access"},
      {"load_at", {65536}, "out of bounds memory access: address 0x10000 in linear memory of size 0x10000"},
      {"load_at", {0xffffffffu}, "out of bounds memory access"},
      {"load_far", {}, "out of bounds memory access"},
      {"fill_all", {}, "out of bounds memory access"},
  };
  auto other = hostile();
  for (const Case& c : cases) {
    InstanceOptions options;
    options.actor_name = "culprit";
    auto guest = hostile(options);
    const Status status = guest->call(c.name, c.args).status();
    EXPECT_EQ(status.code(), Code::kAborted) << c.name;
    EXPECT_TRUE(mentions(status, c.cause)) << c.name << ": " << status.message();
    EXPECT_TRUE(mentions(status, "'culprit'")) << status.message();
    EXPECT_TRUE(mentions(status, std::string("'") + c.name + "'")) << status.message();
    EXPECT_FALSE(guest->alive());
  }
  auto guest = hostile();
  const Status nested = guest->call("load_at", std::vector<uint64_t>{65536}).status();
  EXPECT_TRUE(mentions(nested, "inner < load_at")) << nested.message();
  expect_unharmed(*other);
}

TEST(Hostile, ADeadGuestsMemoryCanStillBeRead) {
  auto guest = hostile();
  ASSERT_FALSE(guest->call("stop", {}).is_ok());
  ASSERT_NE(guest->bytes(0, 65536), nullptr);
  EXPECT_EQ(guest->bytes(0, 65536)[65535], 0);
}

TEST(Hostile, MemoryGrowsToItsLimitAndNoFurther) {
  InstanceOptions options;
  options.max_memory_bytes = 20 * 65536;
  auto guest = hostile(options);
  EXPECT_EQ(guest->call("eat_memory", {})->at(0), 20u);
  EXPECT_EQ(guest->memory_bytes(), 20u * 65536);
  EXPECT_EQ(guest->memory().committed_bytes(), 20u * 65536);
  EXPECT_TRUE(guest->alive()) << "memory.grow fails softly";
  auto greedy = hostile(options);
  EXPECT_EQ(static_cast<int64_t>(greedy->call("eat_at_once", std::vector<uint64_t>{65535})->at(0)), -1);
  EXPECT_EQ(static_cast<int64_t>(greedy->call("eat_at_once", std::vector<uint64_t>{0xffffffffu})->at(0)), -1);
  expect_unharmed(*greedy);
}

TEST(Hostile, TablesGrowToTheirLimitAndNoFurther) {
  InstanceOptions options;
  options.max_table_elements = 5000;
  auto guest = hostile(options);
  EXPECT_LE(guest->call("eat_table", {})->at(0), 5000u);
  expect_unharmed(*guest);
}

TEST(Hostile, SizesBeyondTheLimitsAreRefusedAtTheStart) {
  InstanceOptions options;
  options.max_memory_bytes = 1 << 20;
  auto memory = instance_of(R"((module (memory 17)))", options);
  EXPECT_EQ(memory.status().code(), Code::kResourceExhausted);
  EXPECT_TRUE(mentions(memory.status(), "1114112") && mentions(memory.status(), "1048576"))
      << memory.status().message();
  EXPECT_TRUE(instance_of(R"((module (memory 16)))", options).is_ok());
  auto table = instance_of(R"((module (table 200000 funcref)))");
  EXPECT_EQ(table.status().code(), Code::kResourceExhausted) << table.status().to_string();
  std::string many = "(module";
  for (int i = 0; i < 40; ++i) many += "(table 1 funcref)";
  EXPECT_EQ(instance_of(many + ")").status().code(), Code::kResourceExhausted);
}

TEST(Hostile, ATrapWhileStartingIsAnErrorOfTheStart) {
  const char* const guests[] = {
      R"((module (func $f unreachable) (start $f)))",
      R"((module (memory 1) (data (i32.const 65530) "too far out")))",
      R"((module (func (export "_initialize") unreachable)))",
      R"((module (table 1 funcref) (func $f) (elem (i32.const 5) $f)))",
  };
  for (const char* text : guests) {
    auto instance = instance_of(text);
    EXPECT_EQ(instance.status().code(), Code::kAborted) << text << ": " << instance.status().to_string();
  }
  auto wrong = instance_of(R"((module (func (export "_initialize") (param i32))))");
  EXPECT_EQ(wrong.status().code(), Code::kInvalidArgument);
}

TEST(Hostile, ExportsThatTheHostCannotCallAreRefusedNotCrashedOn) {
  auto instance = instance_of(R"((module
    (func (export "vector") (param v128))
    (func (export "funcref") (result funcref) (ref.null func))
    (func (export "many") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32))))");
  ASSERT_TRUE(instance.is_ok()) << instance.status().to_string();
  for (const char* name : {"vector", "funcref", "many"}) {
    EXPECT_EQ((*instance)->call(name, {}).status().code(), Code::kInvalidArgument) << name;
  }
}

TEST(Hostile, BytesThatAreNoModuleAreRefused) {
  const auto refused = [](const std::string& bytes) {
    return shared_runtime().load("bad", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).status();
  };
  EXPECT_EQ(refused("").code(), Code::kInvalidArgument);
  EXPECT_EQ(refused("garbage").code(), Code::kInvalidArgument);
  EXPECT_EQ(refused("(module (func").code(), Code::kInvalidArgument);
  EXPECT_EQ(refused(std::string("\0asm\1\0\0\0\xff\xff", 10)).code(), Code::kInvalidArgument);
  EXPECT_EQ(refused(std::string("\0asm\2\0\0\0", 8)).code(), Code::kInvalidArgument);
  EXPECT_NE(refused(std::string("\0asm\r\0\1\0", 8)).code(), Code::kOk) << "a component";
  EXPECT_TRUE(mentions(refused("garbage"), "'bad'"));
  EXPECT_EQ(refused("(module " + std::string(100000, '(')).code(), Code::kInvalidArgument);
  const std::string huge(kMaxModuleBytes + 1, '\0');
  EXPECT_EQ(refused(huge).code(), Code::kResourceExhausted);
}

TEST(Hostile, FeaturesThatAreOffAreRefusedAtLoad) {
  const char* const guests[] = {
      R"((module (memory 1 2 shared)))",
      R"((module (memory i64 1)))",
      R"((module (memory 1) (memory 1)))",
      R"((module (type $t (struct (field i32)))))",
      R"((module (tag $e (param i32))))",
  };
  for (const char* text : guests) {
    auto module = load_text(text);
    EXPECT_FALSE(module.is_ok()) << text;
  }
  EXPECT_TRUE(load_text(R"((module (func (param v128 v128) (result v128)
    (f32x4.relaxed_madd (local.get 0) (local.get 1) (local.get 0)))))")
                  .is_ok());
  EXPECT_TRUE(load_text(R"((module (func $f (param i32) (return_call $f (local.get 0)))))").is_ok());
}

TEST(Hostile, NanBitsAreCanonical) {
  auto instance = instance_of(R"((module (func (export "nan") (param f32) (result f32)
    (f32.add (local.get 0) (f32.const 1)))))");
  ASSERT_TRUE(instance.is_ok());
  EXPECT_EQ((*instance)->call("nan", std::vector<uint64_t>{0xffc12345u})->at(0), 0x7fc00000u);
}

TEST(Hostile, ManyThreadsWithTrappingGuestsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::atomic<int> traps{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        auto guest = hostile();
        expect_unharmed(*guest);
        const char* name = (t + i) % 2 == 0 ? "load_far" : "stop";
        if (guest->call(name, {}).status().code() == Code::kAborted) traps++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(traps.load(), 160);
}

}  // namespace
}  // namespace driftwood::wasm
