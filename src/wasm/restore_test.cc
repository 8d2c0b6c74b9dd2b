// What a restore promises beside going on: nothing of the guest runs, nothing is overwritten, and what does
// not fit is refused by name.
#include <filesystem>
#include <fstream>

#include "region/region.h"
#include "wasm/freeze_for_test.h"

namespace driftwood::wasm {
namespace {

uint32_t u32_of(Instance& guest, uint64_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, guest.bytes(offset, 4), 4);
  return value;
}

TEST(Restore, RunsNothingOfTheGuestAndCopiesNoData) {
  auto original = fresh();
  EXPECT_EQ(u32_of(*original, 100), 1u);
  EXPECT_EQ(u32_of(*original, 104), 1u);
  std::memcpy(original->bytes(16, 7), "changed", 7);
  const Frozen frozen(*original);
  auto restored = std::move(frozen.restore(stateful_module())).value();
  EXPECT_EQ(u32_of(*restored, 100), 1u) << "the start function ran again";
  EXPECT_EQ(u32_of(*restored, 104), 1u) << "_initialize ran again";
  EXPECT_EQ(std::memcmp(restored->bytes(16, 7), "changed", 7), 0) << "a data segment was copied again";
}

TEST(Restore, SegmentsAreAsTheyWere) {
  auto original = fresh();
  const Frozen frozen(*original);
  for (int i = 0; i < 2; ++i) {
    auto guest = i == 0 ? std::move(original) : std::move(frozen.restore(stateful_module())).value();
    EXPECT_TRUE(guest->call("late_passive", {}).is_ok());
    EXPECT_EQ(std::memcmp(guest->bytes(200, 4), "late", 4), 0);
    call1(*guest, "late_active", 0);
    const uint64_t one[] = {1};
    const Status status = guest->call("late_active", one).status();
    EXPECT_EQ(status.code(), Code::kAborted) << (i == 0 ? "fresh" : "restored");
    EXPECT_TRUE(mentions(status, "out of bounds memory access")) << status.message();
  }
}

TEST(Restore, GlobalsKeepEveryBit) {
  auto guest = fresh();
  std::vector<GlobalValue> values = std::move(guest->globals()).value();
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[0], (GlobalValue{0, GlobalType::kI32, 3, 0}));
  EXPECT_EQ(values[1], (GlobalValue{2, GlobalType::kI64, static_cast<uint64_t>(int64_t{-5}), 0}));
  EXPECT_EQ(values[2], (GlobalValue{3, GlobalType::kF32, 0x3e800000, 0}));
  EXPECT_EQ(values[3], (GlobalValue{4, GlobalType::kF64, 0x8010000000000000, 0}));
  EXPECT_EQ(values[4], (GlobalValue{5, GlobalType::kV128, 0x0000000200000001, 0x0000000400000003}));
  values[0].bits = 0xffffffff;
  values[2].bits = 0xffa12345;  // a signalling NaN with a payload
  values[3].bits = 0x7ff0000000000001;
  values[4].bits = 0x7fa000017fa00002;
  std::swap(values[0], values[3]);  // the order is free
  ASSERT_TRUE(guest->set_globals(values).is_ok());
  std::swap(values[0], values[3]);
  EXPECT_EQ(guest->globals().value(), values);
  const Frozen frozen(*guest);
  auto restored = std::move(frozen.restore(stateful_module())).value();
  EXPECT_EQ(restored->globals().value(), values);
}

TEST(Restore, MemoryGrowsOnFromTheImage) {
  auto original = fresh();
  EXPECT_EQ(call1(*original, "grow", 3), 2u);
  const uint64_t at = 5 * 65536 - 1;
  original->memory().base()[at] = 77;
  const Frozen frozen(*original);
  auto restored = std::move(frozen.restore(stateful_module())).value();
  EXPECT_EQ(restored->call("size", {})->at(0), 5u);
  EXPECT_EQ(restored->memory_bytes(), 5u * 65536);
  EXPECT_EQ(call1(*restored, "peek", at), 77u);
  uint8_t* base = restored->memory().base();
  EXPECT_EQ(call1(*restored, "grow", 4), 5u);
  EXPECT_EQ(restored->wasmtime_memory_base(), base);
  EXPECT_EQ(call1(*restored, "peek", at), 77u);
  EXPECT_EQ(call1(*restored, "peek", 9 * 65536 - 1), 0u);
  const uint64_t poke[] = {9 * 65536 - 1, 5};
  EXPECT_TRUE(restored->call("poke", poke).is_ok());
  EXPECT_EQ(static_cast<int64_t>(call1(*restored, "grow", 8)), -1) << "past the module's maximum";
  const uint64_t beyond[] = {9 * 65536};
  EXPECT_EQ(restored->call("peek", beyond).status().code(), Code::kAborted);
}

TEST(Restore, AMemoryMayBeLargerThanItsImage) {
  auto original = fresh();
  const Frozen frozen(*original);
  FrozenMemory memory = frozen.memory();
  memory.image.memory_bytes = 4 * 65536;
  auto restored = shared_runtime().restore(stateful_module(), {}, {}, memory, frozen.globals());
  ASSERT_TRUE(restored.is_ok()) << restored.status().to_string();
  EXPECT_EQ((*restored)->call("size", {})->at(0), 4u);
  EXPECT_EQ(
      std::memcmp((*restored)->bytes(0, frozen.bytes().size()), frozen.bytes().data(), frozen.bytes().size()),
      0);
  EXPECT_EQ(call1(**restored, "peek", 4 * 65536 - 1), 0u);
  memory.image.memory_bytes = 65536;
  EXPECT_EQ(shared_runtime().restore(stateful_module(), {}, {}, memory, frozen.globals()).status().code(),
            Code::kInvalidArgument);
}

TEST(Restore, ReplacesATrappedGuest) {
  auto guest = fresh();
  const Steps before = run_steps(*guest, 5);
  const Frozen frozen(*guest);
  const Steps expected = run_steps(*guest, 5);
  EXPECT_EQ(guest->call("stop", {}).status().code(), Code::kAborted);
  EXPECT_EQ(guest->can_freeze().code(), Code::kFailedPrecondition);
  EXPECT_EQ(guest->globals().status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(guest->set_globals(frozen.globals()).code(), Code::kFailedPrecondition);
  guest = std::move(frozen.restore(stateful_module())).value();
  EXPECT_TRUE(guest->alive());
  EXPECT_TRUE(run_steps(*guest, 5) == expected);
}

// Each trap in C leaves the stack pointer low; a hundred restores begin where the frozen one was.
TEST(Restore, TrapsDoNotWearTheStackDown) {
  auto module = freezing_c_module();
  auto guest = std::move(shared_runtime().instantiate(module, {}, {})).value();
  run_steps(*guest, 3);
  const Frozen frozen(*guest);
  const Steps expected = run_steps(*guest, 5);
  for (int i = 0; i < 100; ++i) {
    guest = std::move(frozen.restore(module)).value();
    const uint64_t args[] = {7};
    ASSERT_EQ(guest->call("overflow", args).status().code(), Code::kAborted) << i;
  }
  guest = std::move(frozen.restore(module)).value();
  EXPECT_TRUE(run_steps(*guest, 5) == expected);
}

TEST(Restore, AModuleWithoutMemoryHasOnlyGlobals) {
  auto module = std::move(load_text(R"((module (global $n (mut i64) (i64.const 1))
    (func (export "step") (result i64) (global.set $n (i64.mul (global.get $n) (i64.const 3))) (global.get $n))))"))
                    .value();
  auto guest = std::move(shared_runtime().instantiate(module, {}, {})).value();
  EXPECT_EQ(guest->call("step", {})->at(0), 3u);
  const std::vector<GlobalValue> globals = std::move(guest->globals()).value();
  auto restored = shared_runtime().restore(module, {}, {}, FrozenMemory{}, globals);
  ASSERT_TRUE(restored.is_ok()) << restored.status().to_string();
  EXPECT_EQ((*restored)->call("step", {})->at(0), 9u);
  FrozenMemory page;
  page.image.pieces = {{region::kNoFile, 0, 65536}};
  const Status status = shared_runtime().restore(module, {}, {}, page, globals).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(mentions(status, "no memory")) << status.message();
}

void look_inside(CallContext& context, const uint64_t*, uint64_t* results) {
  results[0] = static_cast<uint64_t>(context.instance().can_freeze().code());
  results[0] += 100 * static_cast<uint64_t>(context.instance().globals().status().code());
}

TEST(Restore, HostFunctionsAreBoundAndInsideACallNothingIsFrozen) {
  const std::vector<HostImport> imports = {{"driftwood", "look", {{}, {ValueType::kI32}}, look_inside}};
  auto module =
      std::move(load_text(R"((module (import "driftwood" "look" (func $look (result i32))) (memory 1)
    (func (export "look") (result i32) (call $look))))"))
          .value();
  auto guest = std::move(shared_runtime().instantiate(module, imports, {})).value();
  const uint64_t refused = 101 * static_cast<uint64_t>(Code::kFailedPrecondition);
  EXPECT_EQ(guest->call("look", {})->at(0), refused);
  const Frozen frozen(*guest);
  EXPECT_EQ(frozen.restore(module).status().code(), Code::kNotFound)
      << "an import that this host does not offer";
  auto restored = shared_runtime().restore(module, imports, {}, frozen.memory(), frozen.globals());
  ASSERT_TRUE(restored.is_ok()) << restored.status().to_string();
  EXPECT_EQ((*restored)->call("look", {})->at(0), refused);
}

TEST(RestoreRefuses, ModulesWithBlockersWithTheirReasons) {
  auto module = std::move(load_text(R"((module (memory 1) (table 2 funcref) (func $f) (elem declare func $f)
    (data $late "x")
    (func (export "drop") (data.drop $late))
    (func (export "change") (table.set (i32.const 0) (ref.func $f)))))"))
                    .value();
  ASSERT_EQ(module->report().snapshot_blockers.size(), 2u);
  InstanceOptions options;
  options.actor_name = "keeper";
  auto guest = std::move(shared_runtime().instantiate(module, {}, options)).value();
  const Frozen frozen(*guest);
  for (const Status& status : {guest->can_freeze(), frozen.restore(module, options).status()}) {
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    EXPECT_TRUE(mentions(status, "'keeper'")) << status.message();
    for (const std::string& reason : module->report().snapshot_blockers) {
      EXPECT_TRUE(mentions(status, reason)) << status.message();
    }
  }
}

TEST(RestoreRefuses, GlobalsThatHoldReferences) {
  auto guest = instance_of(R"((module (memory 1) (global (mut funcref) (ref.null func))))");
  ASSERT_TRUE(guest.is_ok()) << guest.status().to_string();
  EXPECT_EQ((*guest)->can_freeze().code(), Code::kFailedPrecondition);
  EXPECT_EQ((*guest)->globals().status().code(), Code::kUnimplemented);
}

TEST(RestoreRefuses, OpenFiles) {
  const std::string folder = testing::TempDir() + "dw_frozen_files";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/notes.txt") << "x";
  InstanceOptions options;
  options.wasi.folders = {{"/home", folder, false}};
  auto module = std::move(load_text(R"((module
    (import "wasi_snapshot_preview1" "path_open"
      (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 8) "notes.txt")
    (func (export "open") (result i32)
      (call $open (i32.const 3) (i32.const 0) (i32.const 8) (i32.const 9) (i32.const 0) (i64.const 2) (i64.const 0)
                  (i32.const 0) (i32.const 0)))
    (func (export "close") (result i32) (call $close (i32.load (i32.const 0))))))"))
                    .value();
  auto guest = std::move(shared_runtime().instantiate(module, {}, options)).value();
  EXPECT_TRUE(guest->can_freeze().is_ok());
  ASSERT_EQ(guest->call("open", {})->at(0), 0u);
  const Status status = guest->can_freeze();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_TRUE(mentions(status, "notes.txt")) << status.message();
  ASSERT_EQ(guest->call("close", {})->at(0), 0u);
  EXPECT_TRUE(guest->can_freeze().is_ok());
  std::filesystem::remove_all(folder);
}

TEST(RestoreRefuses, StandardStreamsAndFoldersThatAreNotAsAtTheStart) {
  const std::string folder = testing::TempDir() + "dw_frozen_folder";
  std::filesystem::create_directory(folder);
  InstanceOptions options;
  options.wasi.folders = {{"/home", folder, false}};
  auto module = std::move(load_text(R"((module
    (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_renumber" (func $move (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_fdstat_set_rights" (func $restrict (param i32 i64 i64) (result i32)))
    (memory (export "memory") 1)
    (func (export "close") (result i32) (call $close (i32.const 1)))
    (func (export "move") (result i32) (call $move (i32.const 3) (i32.const 2)))
    (func (export "restrict") (result i32) (call $restrict (i32.const 0) (i64.const 0) (i64.const 0)))))"))
                    .value();
  const std::pair<const char*, const char*> cases[] = {
      {"close", "descriptor 1"}, {"move", "descriptor 2"}, {"restrict", "descriptor 0"}};
  for (const auto& [change, named] : cases) {
    auto guest = std::move(shared_runtime().instantiate(module, {}, options)).value();
    ASSERT_TRUE(guest->can_freeze().is_ok()) << guest->can_freeze().to_string();
    ASSERT_EQ(guest->call(change, {})->at(0), 0u) << change;
    EXPECT_EQ(guest->can_freeze().code(), Code::kFailedPrecondition) << change;
    EXPECT_TRUE(mentions(guest->can_freeze(), named)) << guest->can_freeze().message();
  }
  std::filesystem::remove_all(folder);
}

TEST(RestoreRefuses, GlobalsOfAnotherModule) {
  auto guest = fresh();
  const Frozen frozen(*guest);
  std::vector<GlobalValue> values = frozen.globals();
  const auto refused = [&](const char* text) {
    const Status restored =
        shared_runtime().restore(stateful_module(), {}, {}, frozen.memory(), values).status();
    const Status set = guest->set_globals(values);
    for (const Status& status : {restored, set}) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
      EXPECT_TRUE(mentions(status, text)) << status.message();
    }
    EXPECT_EQ(guest->globals().value(), frozen.globals()) << "something was set";
    values = frozen.globals();
  };
  values[0].bits = 99;
  values.erase(values.begin() + 3);
  refused("global 4 (f64) is not saved");
  values[0].bits = 99;
  values.push_back(GlobalValue{9, GlobalType::kI32, 0, 0});
  refused("saved global 9 (i32) is no mutable global");
  values.push_back(GlobalValue{1, GlobalType::kI32, 0, 0});
  refused("saved global 1 (i32) is no mutable global");
  values[1].type = GlobalType::kF64;
  refused("global 2 is i64 in the module, saved as f64");
  values.push_back(values[2]);
  refused("global 3 is saved twice");
  values[0].bits = uint64_t{1} << 32;
  refused("saved global 0 (i32) has more bits");
  values[3].high_bits = 1;
  refused("saved global 4 (f64) has more bits");
  values.clear();
  refused("global 0 (i32) is not saved; global 2 (i64) is not saved");
}

TEST(RestoreRefuses, ImagesThatDoNotFit) {
  auto guest = fresh();
  ASSERT_EQ(call1(*guest, "grow", 6), 2u);
  const Frozen frozen(*guest);
  const auto refused = [&](const MemoryImage& image, Code code, const char* text,
                           uint64_t limit = 256 << 20) {
    InstanceOptions options;
    options.actor_name = "keeper";
    options.max_memory_bytes = limit;
    const FrozenMemory memory{image, {}, nullptr};
    const Status status =
        shared_runtime().restore(stateful_module(), {}, options, memory, frozen.globals()).status();
    EXPECT_EQ(status.code(), code) << status.to_string();
    EXPECT_TRUE(mentions(status, text) && mentions(status, "'keeper'")) << status.message();
  };
  MemoryImage image = frozen.image();
  region::FileImage& piece = image.pieces[0];
  piece.length -= 4096;
  refused(image, Code::kInvalidArgument, "piece 0 has 520192 bytes at 0: not whole pages");
  piece.length = 65536;
  refused(image, Code::kInvalidArgument, "1 pages, the module declares 2 to 16");
  piece.length = 17 * 65536;
  refused(image, Code::kInvalidArgument, "17 pages, the module declares 2 to 16");
  piece.length = 9 * 65536;
  refused(image, Code::kDataLoss, "image piece 0: image file has");
  piece.length = SIZE_MAX - 65535;
  refused(image, Code::kInvalidArgument, "piece 0 has");
  piece = frozen.image().pieces[0];
  refused(image, Code::kResourceExhausted, "the limit is 262144", 4 * 65536);
  piece.offset = 4096;
  refused(image, Code::kInvalidArgument, "multiple of 65536");
  piece.offset = UINT64_MAX - 65535;
  refused(image, Code::kDataLoss, "image file has");
  piece = frozen.image().pieces[0];
  image.memory_bytes = UINT64_MAX - 65535;
  refused(image, Code::kInvalidArgument, "the module declares");
  image.memory_bytes = 9 * 65536 + 4096;
  refused(image, Code::kInvalidArgument, "a memory of 593920 bytes: not whole pages");
  image.memory_bytes = 0;
  image.pieces.push_back({region::kNoFile, 0, 65536});
  image.pieces.push_back({region::kNoFile, 0, SIZE_MAX - 65535});
  refused(image, Code::kInvalidArgument, "piece 2 has");
  image.pieces[2] = {-2, 0, 65536};
  refused(image, Code::kUnavailable, "image piece 2: image file, descriptor -2");
  ASSERT_EQ(ftruncate(frozen.fd(), static_cast<off_t>(Frozen::kOffset + frozen.bytes().size() - 1)), 0);
  refused(frozen.image(), Code::kDataLoss, "image file has");
}

TEST(RestoreRefuses, PatchesThatDoNotFit) {
  auto guest = fresh();
  const Frozen frozen(*guest);
  const size_t page = region::os_page_bytes();
  const std::vector<uint8_t> bytes(4 * 65536, 0x33);
  const auto refused = [&](std::vector<std::pair<uint64_t, uint64_t>> patches, const char* text) {
    FrozenMemory memory = frozen.memory();
    for (const auto& [offset, length] : patches)
      memory.patches.push_back({offset, std::span(bytes).first(length)});
    const Status status =
        shared_runtime().restore(stateful_module(), {}, {}, memory, frozen.globals()).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_TRUE(mentions(status, text)) << status.message();
  };
  refused({{0, page}, {page + 1, page}}, "patch 1 of ");
  refused({{0, page - 1}}, ": not whole pages");
  refused({{2 * 65536 - page, 2 * page}}, "patch 0 of ");
  refused({{2 * 65536, page}}, " is past the end of a memory of 131072");
  refused({{UINT64_MAX - page + 1, page}}, " is past the end");
  refused({{page, 2 * page}, {2 * page, page}}, "patch 1 of ");
  refused({{2 * page, page}, {0, page}}, " begins before the end of the one before it");
  EXPECT_EQ(memory_of(*guest), frozen.bytes());
  EXPECT_TRUE(frozen.file_is_unchanged());
}

TEST(Restore, ManyCyclesLeaveNothingBehind) {
  if (!std::filesystem::exists("/proc/self/fd")) GTEST_SKIP() << "this system does not list descriptors";
  auto original = fresh();
  ASSERT_EQ(call1(*original, "grow", 14), 2u);
  const Frozen frozen(*original);
  const auto cycle = [&](int count) {
    for (int i = 0; i < count; ++i) {
      auto restored = frozen.restore(stateful_module());
      ASSERT_TRUE(restored.is_ok()) << i << ": " << restored.status().to_string();
      std::memset((*restored)->memory().base(), 1, (*restored)->memory_bytes());
      ASSERT_TRUE((*restored)->call("step", {}).is_ok());
      ASSERT_TRUE((*restored)->globals().is_ok());
      // One that fails half-way, too: the file is too short.
      FrozenMemory memory = frozen.memory();
      memory.image.pieces[0].offset += 65536;
      ASSERT_FALSE(shared_runtime().restore(stateful_module(), {}, {}, memory, frozen.globals()).is_ok());
    }
  };
  cycle(20);
  const auto before = region::process_residency();
  ASSERT_TRUE(before.is_ok());
  const size_t descriptors = open_descriptors();
  const size_t maps = mappings();
  cycle(500);
  const auto after = region::process_residency();
  ASSERT_TRUE(after.is_ok());
  EXPECT_LT(after->rss_bytes, before->rss_bytes + (1u << 20));
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(mappings(), maps + 2);
}

}  // namespace
}  // namespace driftwood::wasm
