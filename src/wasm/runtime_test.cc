#include "wasm/runtime.h"

#include <gtest/gtest.h>

#include <cstring>

#include "region/region.h"
#include "wasm/guest_for_test.h"

namespace driftwood::wasm {
namespace {

constexpr char kMemoryGuest[] = R"((module
  (memory (export "memory") 1 4)
  (global $count (mut i32) (i32.const 40))
  (data (i32.const 16) "driftwood")
  (func $init (global.set $count (i32.add (global.get $count) (i32.const 2))))
  (start $init)
  (func (export "count") (result i32) (global.get $count))
  (func (export "peek") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func (export "poke") (param i32 i32) (i32.store8 (local.get 0) (local.get 1)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "mix") (param i32 i64 f32 f64) (result i64)
    (i64.add (i64.add (i64.extend_i32_s (local.get 0)) (local.get 1))
             (i64.add (i64.trunc_f32_s (local.get 2)) (i64.trunc_f64_s (local.get 3)))))
  (func (export "negative") (result i32) (i32.const -5))))";

TEST(Runtime, DataSegmentsAndStartFunctionRunOnceAtAFreshStart) {
  auto instance = instance_of(kMemoryGuest);
  ASSERT_TRUE(instance.is_ok()) << instance.status().to_string();
  Instance& guest = **instance;
  EXPECT_EQ(guest.call("count", {})->at(0), 42u);
  EXPECT_EQ(std::memcmp(guest.bytes(16, 9), "driftwood", 9), 0);
  EXPECT_TRUE(guest.has_export("count"));
  EXPECT_FALSE(guest.has_export("memory"));
  EXPECT_FALSE(guest.has_export("__dw_init"));
  EXPECT_EQ(guest.call("__dw_init", {}).status().code(), Code::kNotFound);
}

TEST(Runtime, ValuesCrossTheBoundaryInRawSlots) {
  auto instance = instance_of(kMemoryGuest);
  ASSERT_TRUE(instance.is_ok());
  const float f = 7.5f;
  const double d = -3.25;
  uint32_t f_bits;
  uint64_t d_bits;
  std::memcpy(&f_bits, &f, 4);
  std::memcpy(&d_bits, &d, 8);
  const uint64_t args[] = {static_cast<uint64_t>(int64_t{-100}), 1ull << 40, f_bits, d_bits};
  auto result = (*instance)->call("mix", args);
  ASSERT_TRUE(result.is_ok()) << result.status().to_string();
  EXPECT_EQ(static_cast<int64_t>(result->at(0)), (int64_t{1} << 40) - 100 + 7 - 3);
  EXPECT_EQ(static_cast<int64_t>((*instance)->call("negative", {})->at(0)), -5);
}

TEST(Runtime, GuestMemoryIsTheRegionBeforeAndAfterGrowth) {
  auto instance = instance_of(kMemoryGuest);
  ASSERT_TRUE(instance.is_ok());
  auto& guest = static_cast<GuestInstance&>(**instance);
  uint8_t* base = guest.memory().base();
  EXPECT_EQ(guest.wasmtime_memory_base(), base);
  EXPECT_EQ(guest.memory_bytes(), 65536u);
  const uint64_t poke[] = {100, 99};
  ASSERT_TRUE(guest.call("poke", poke).is_ok());
  EXPECT_EQ(base[100], 99);
  const uint64_t two[] = {2};
  EXPECT_EQ(guest.call("grow", two)->at(0), 1u);
  EXPECT_EQ(guest.wasmtime_memory_base(), base);
  EXPECT_EQ(guest.memory().base(), base);
  EXPECT_EQ(guest.memory_bytes(), 3u * 65536);
  base[2 * 65536 + 5] = 77;
  const uint64_t peek[] = {2 * 65536 + 5};
  EXPECT_EQ(guest.call("peek", peek)->at(0), 77u);
  EXPECT_EQ(static_cast<int64_t>(guest.call("grow", two)->at(0)), -1) << "past the module's own maximum";
}

TEST(Runtime, BytesIsCheckedWithoutOverflow) {
  auto instance = instance_of(kMemoryGuest);
  ASSERT_TRUE(instance.is_ok());
  Instance& guest = **instance;
  EXPECT_EQ(guest.bytes(0, 65536), guest.memory().base());
  EXPECT_NE(guest.bytes(65536, 0), nullptr);
  EXPECT_EQ(guest.bytes(65536, 1), nullptr);
  EXPECT_EQ(guest.bytes(1, UINT64_MAX), nullptr);
  EXPECT_EQ(guest.bytes(UINT64_MAX, 2), nullptr);
}

TEST(Runtime, AModuleWithoutMemoryHasAnEmptyOne) {
  auto instance = instance_of(R"((module (func (export "f") (result i32) (i32.const 3))))");
  ASSERT_TRUE(instance.is_ok()) << instance.status().to_string();
  EXPECT_EQ((*instance)->memory_bytes(), 0u);
  EXPECT_EQ((*instance)->bytes(0, 1), nullptr);
  EXPECT_EQ((*instance)->call("f", {})->at(0), 3u);
}

TEST(Runtime, WrongNamesAndSignaturesAreToldAndDoNotKill) {
  auto instance = instance_of(kMemoryGuest);
  ASSERT_TRUE(instance.is_ok());
  Instance& guest = **instance;
  EXPECT_EQ(guest.call("nothing", {}).status().code(), Code::kNotFound);
  EXPECT_TRUE(mentions(guest.call("nothing", {}).status(), "'nothing'"));
  EXPECT_EQ(guest.call("peek", {}).status().code(), Code::kInvalidArgument);
  auto wrong = guest.resolve("peek", Signature{{ValueType::kI64}, {}});
  EXPECT_EQ(wrong.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(mentions(wrong.status(), "(i32) -> i32")) << wrong.status().message();
  EXPECT_TRUE(guest.alive());
  EXPECT_EQ(guest.call("count", {})->at(0), 42u);
}

TEST(Runtime, ResolvedCallsGiveTheSameAsCallsByName) {
  auto instance = instance_of(kMemoryGuest);
  ASSERT_TRUE(instance.is_ok());
  auto handle = (*instance)->resolve("peek", Signature{{ValueType::kI32}, {ValueType::kI32}});
  ASSERT_TRUE(handle.is_ok()) << handle.status().to_string();
  const uint64_t args[] = {17};
  uint64_t results[] = {0};
  ASSERT_TRUE((*instance)->call_resolved(*handle, args, results).is_ok());
  EXPECT_EQ(results[0], static_cast<uint64_t>('r'));
  EXPECT_EQ((*instance)->call_resolved(*handle, {}, results).code(), Code::kInvalidArgument);
}

TEST(Runtime, ReactorsAreInitialised) {
  auto instance = instance_of(R"((module
    (global $ready (mut i32) (i32.const 0))
    (func (export "_initialize") (global.set $ready (i32.const 1)))
    (func (export "ready") (result i32) (global.get $ready))))");
  ASSERT_TRUE(instance.is_ok());
  EXPECT_EQ((*instance)->call("ready", {})->at(0), 1u);
}

TEST(Runtime, TheReportTellsWhatTheModuleIs) {
  auto module = load_text(kMemoryGuest);
  ASSERT_TRUE(module.is_ok());
  const ModuleReport& report = (*module)->report();
  EXPECT_TRUE(report.snapshot_blockers.empty());
  EXPECT_EQ(report.exports.size(), 6u);
  EXPECT_EQ(report.hash_hex.size(), 64u);
  auto table = load_text(R"((module (table 2 funcref) (func $f)
    (elem declare func $f)
    (func (export "change") (table.set (i32.const 0) (ref.func $f)))))");
  ASSERT_TRUE(table.is_ok()) << table.status().to_string();
  EXPECT_FALSE((*table)->report().snapshot_blockers.empty());
}

// The host's side of the host call tests.
struct HostSide {
  int calls = 0;
  Instance* seen = nullptr;
};

void add_wide(CallContext& context, const uint64_t* args, uint64_t* results) {
  auto* side = static_cast<HostSide*>(context.user());
  side->calls++;
  side->seen = &context.instance();
  results[0] = args[0] + args[1];
}
void refuse(CallContext& context, const uint64_t*, uint64_t*) { context.trap("offset 99 is outside of memory"); }
void call_back(CallContext& context, const uint64_t*, uint64_t* results) {
  results[0] = static_cast<uint64_t>(context.instance().call("count", {}).status().code());
}

const std::vector<HostImport>& host_imports() {
  static const std::vector<HostImport> imports = {
      {"driftwood", "add", {{ValueType::kI32, ValueType::kI64}, {ValueType::kI64}}, add_wide},
      {"driftwood", "refuse", {{}, {}}, refuse},
      {"driftwood", "call_back", {{}, {ValueType::kI32}}, call_back},
  };
  return imports;
}

constexpr char kCallingGuest[] = R"((module
  (import "driftwood" "add" (func $add (param i32 i64) (result i64)))
  (import "driftwood" "refuse" (func $refuse))
  (import "driftwood" "call_back" (func $call_back (result i32)))
  (func (export "sum") (param i32 i64) (result i64) (call $add (local.get 0) (local.get 1)))
  (func $middle (call $refuse))
  (func (export "bad") (call $middle))
  (func (export "count") (result i32) (i32.const 1))
  (func (export "nested") (result i32) (call $call_back))))";

TEST(HostCalls, ReachTheHostWithSignExtendedArgumentsAndTheUser) {
  HostSide side;
  InstanceOptions options;
  options.user = &side;
  auto instance = instance_of(kCallingGuest, options, host_imports());
  ASSERT_TRUE(instance.is_ok()) << instance.status().to_string();
  const uint64_t args[] = {static_cast<uint64_t>(int64_t{-3}), 10};
  EXPECT_EQ((*instance)->call("sum", args)->at(0), 7u);
  EXPECT_EQ(side.calls, 1);
  EXPECT_EQ(side.seen, instance->get());
}

TEST(HostCalls, ATrapOfTheHostEndsTheGuestWithItsMessage) {
  InstanceOptions options;
  options.actor_name = "victim";
  auto instance = instance_of(kCallingGuest, options, host_imports());
  ASSERT_TRUE(instance.is_ok());
  const Status status = (*instance)->call("bad", {}).status();
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_TRUE(mentions(status, "'victim'")) << status.message();
  EXPECT_TRUE(mentions(status, "'bad'")) << status.message();
  EXPECT_TRUE(mentions(status, "offset 99 is outside of memory")) << status.message();
  EXPECT_TRUE(mentions(status, "middle")) << status.message();
  EXPECT_FALSE((*instance)->alive());
  const Status later = (*instance)->call("count", {}).status();
  EXPECT_EQ(later.code(), Code::kFailedPrecondition);
  EXPECT_TRUE(mentions(later, "offset 99")) << later.message();
}

TEST(HostCalls, CannotCallBackIntoTheGuest) {
  auto instance = instance_of(kCallingGuest, {}, host_imports());
  ASSERT_TRUE(instance.is_ok());
  EXPECT_EQ((*instance)->call("nested", {})->at(0), static_cast<uint64_t>(Code::kFailedPrecondition));
  EXPECT_EQ((*instance)->call("count", {})->at(0), 1u);
}

TEST(HostCalls, MissingAndMismatchedImportsAreNamed) {
  auto missing = instance_of(R"((module (import "driftwood" "nope" (func (param i32 i64) (result f32)))))", {},
                             host_imports());
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_TRUE(mentions(missing.status(), "driftwood.nope (i32, i64) -> f32")) << missing.status().message();
  auto mismatch = instance_of(R"((module (import "driftwood" "add" (func (param i32) (result i64)))))", {},
                              host_imports());
  EXPECT_EQ(mismatch.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(mentions(mismatch.status(), "driftwood.add as (i32) -> i64")) << mismatch.status().message();
  EXPECT_TRUE(mentions(mismatch.status(), "(i32, i64) -> i64")) << mismatch.status().message();
  auto vector = instance_of(R"((module (import "driftwood" "refuse" (func (param v128)))))", {}, host_imports());
  EXPECT_EQ(vector.status().code(), Code::kInvalidArgument);
  auto wasi = instance_of(R"((module (import "wasi_snapshot_preview1" "fd_close" (func (param i64) (result i32)))))");
  EXPECT_EQ(wasi.status().code(), Code::kInvalidArgument);
  auto memory = instance_of(R"((module (import "env" "memory" (memory 1))))");
  EXPECT_EQ(memory.status().code(), Code::kNotFound);
  EXPECT_TRUE(mentions(memory.status(), "memory env.memory")) << memory.status().message();
}

TEST(Runtime, ManyInstancesLeaveNoMemoryBehind) {
  auto module = load_text(kMemoryGuest);
  ASSERT_TRUE(module.is_ok());
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      auto instance = shared_runtime().instantiate(*module, {}, {});
      ASSERT_TRUE(instance.is_ok()) << i << ": " << instance.status().to_string();
      const uint64_t two[] = {2};
      ASSERT_EQ((*instance)->call("grow", two)->at(0), 1u);
      std::memset((*instance)->bytes(0, 3 * 65536), 1, 3 * 65536);
    }
  };
  run(50);
  const auto before = region::process_residency();
  ASSERT_TRUE(before.is_ok());
  run(2000);
  const auto after = region::process_residency();
  ASSERT_TRUE(after.is_ok());
  EXPECT_LT(after->rss_bytes, before->rss_bytes + (2u << 20));
}

}  // namespace
}  // namespace driftwood::wasm
