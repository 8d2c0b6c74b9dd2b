// Freezing a memory: the image it lives on and every page written since, whatever it began with.
#include "wasm/memory_for_test.h"

namespace driftwood::wasm {
namespace {

using region::ByteRange;

TEST(FreezeMemory, OfAFreshGuestIsItsPagesThatAreNotZero) {
  auto guest = fresh();
  const size_t page = region::os_page_bytes();
  guest->memory().base()[kUnit + 5] = 1;
  guest->memory().base()[kUnit + 3 * page] = 1;
  std::memset(guest->memory().base() + 2 * kUnit - page, 0, page);
  auto frozen = guest->freeze_memory();
  ASSERT_TRUE(frozen.is_ok()) << frozen.status().to_string();
  EXPECT_TRUE(frozen->image.pieces.empty());
  EXPECT_EQ(frozen->image.memory_bytes, 2 * kUnit);
  EXPECT_EQ(ranges_of(*frozen), (std::vector<ByteRange>{{0, page}, {kUnit, page}, {kUnit + 3 * page, page}}));
  const std::vector<uint8_t> expected = memory_of(*guest);
  EXPECT_EQ(bytes_of(*frozen), expected);
  std::memset(guest->memory().base(), 9, 2 * kUnit);
  EXPECT_EQ(bytes_of(*frozen), expected) << "a copy, not a view";
  const auto globals = std::move(guest->globals()).value();
  guest.reset();
  auto restored = revive(*frozen, globals);
  EXPECT_EQ(memory_of(*restored), expected);
  auto again = std::move(restored->freeze_memory()).value();
  EXPECT_EQ(ranges_of(again), ranges_of(*frozen));
  EXPECT_EQ(bytes_of(again), expected);
}

TEST(FreezeMemory, OfAGuestOnPiecesOfTwoFilesIsWhatItWroteOfThem) {
  const TwoFiles files;
  const size_t page = region::os_page_bytes();
  auto guest = files.instance();
  EXPECT_EQ(memory_of(*guest), files.bytes);
  EXPECT_TRUE(guest->freeze_memory()->patches.empty()) << "a restore and a look write nothing";
  std::vector<ByteRange> expected;
  for (const uint64_t at : {uint64_t{0}, kUnit + 2 * page, 2 * kUnit, 3 * kUnit + page, 5 * kUnit - page,
                            5 * kUnit + 7 * page, 6 * kUnit + page, 8 * kUnit - page}) {
    const uint64_t poke[] = {at + 123, 0xa5};
    ASSERT_TRUE(guest->call("poke", poke).is_ok());
    expected.push_back({at, page});
  }
  ASSERT_EQ(call1(*guest, "grow", 3), 8u);
  const uint64_t poke[] = {11 * kUnit - 1, 0xa5};
  ASSERT_TRUE(guest->call("poke", poke).is_ok());
  expected.push_back({11 * kUnit - page, page});
  auto frozen = std::move(guest->freeze_memory()).value();
  EXPECT_EQ(frozen.image.pieces.size(), files.image.pieces.size());
  EXPECT_EQ(frozen.image.owner, files.image.owner);
  EXPECT_EQ(frozen.image.memory_bytes, 11 * kUnit);
  EXPECT_EQ(ranges_of(frozen), expected);
  EXPECT_EQ(bytes_of(frozen), memory_of(*guest));
  auto restored = revive(frozen, guest->globals().value());
  EXPECT_EQ(memory_of(*restored), memory_of(*guest));
  EXPECT_EQ(restored->call("size", {})->at(0), 11u);
}

TEST(FreezeMemory, GoesOnOverGenerationsOfWritesAndGrowth) {
  const TwoFiles files;
  auto guest = files.instance();
  auto twin = files.instance();
  for (int generation = 0; generation < 8; ++generation) {
    const Steps expected = run_steps(*twin, 5);
    ASSERT_TRUE(run_steps(*guest, 5) == expected) << generation;
    ASSERT_EQ(call1(*guest, "grow", 1), call1(*twin, "grow", 1));
    guest->memory().base()[guest->memory_bytes() - 1] = twin->memory().base()[twin->memory_bytes() - 1] = 3;
    const FrozenMemory frozen = std::move(guest->freeze_memory()).value();
    const auto globals = std::move(guest->globals()).value();
    guest.reset();
    guest = revive(frozen, globals);
    ASSERT_EQ(memory_of(*guest), memory_of(*twin)) << generation;
    EXPECT_EQ(ranges_of(guest->freeze_memory().value()), ranges_of(frozen));
  }
}

TEST(FreezeMemory, TellsPagesThatBecameZero) {
  const TwoFiles files;
  const size_t page = region::os_page_bytes();
  auto guest = files.instance();
  std::memset(guest->memory().base() + page, 0, page);
  std::memset(guest->memory().base() + kUnit, 0, page);  // zeros before
  const FrozenMemory frozen = std::move(guest->freeze_memory()).value();
  EXPECT_EQ(ranges_of(frozen), (std::vector<ByteRange>{{page, page}}));
  EXPECT_EQ(memory_of(*revive(frozen, guest->globals().value())), memory_of(*guest));
}

// A descriptor that nobody keeps may be any other file's by now.
TEST(FreezeMemory, NeverTellsAnImageThatNobodyKeepsOpen) {
  FrozenMemory lent;
  std::vector<uint8_t> expected;
  std::unique_ptr<Instance> guest;
  {
    const TwoFiles files;
    lent.image = files.image;
    lent.image.owner.reset();
    guest = revive(lent, fresh()->globals().value());
  }
  guest->memory().base()[6 * kUnit] = 1;
  for (auto memory : {guest->freeze_memory(), guest->fork_memory()}) {
    ASSERT_TRUE(memory.is_ok()) << memory.status().to_string();
    for (const region::FileImage& piece : memory->image.pieces) {
      for (const region::FileImage& dead : lent.image.pieces)
        EXPECT_TRUE(piece.fd < 0 || dead.fd != piece.fd);
    }
    EXPECT_EQ(bytes_of(*memory), memory_of(*guest));
    EXPECT_EQ(memory_of(*revive(*memory, guest->globals().value())), memory_of(*guest));
  }
}

TEST(FreezeMemory, OfAModuleWithoutMemoryIsNothing) {
  auto module = std::move(load_text("(module (global (mut i32) (i32.const 4)))")).value();
  auto guest = std::move(shared_runtime().instantiate(module, {}, {})).value();
  for (auto memory : {guest->freeze_memory(), guest->fork_memory()}) {
    ASSERT_TRUE(memory.is_ok()) << memory.status().to_string();
    EXPECT_EQ(memory->image.memory_bytes, 0u);
    EXPECT_TRUE(memory->patches.empty());
    EXPECT_EQ(revive(*memory, guest->globals().value(), module)->globals().value(), guest->globals().value());
  }
}

void freeze_inside(CallContext& context, const uint64_t*, uint64_t* results) {
  results[0] = static_cast<uint64_t>(context.instance().freeze_memory().status().code());
  results[0] += 100 * static_cast<uint64_t>(context.instance().fork_memory().status().code());
}

TEST(FreezeMemory, IsRefusedInACallAndOfADeadGuest) {
  const std::vector<HostImport> imports = {{"driftwood", "look", {{}, {ValueType::kI32}}, freeze_inside}};
  auto module =
      std::move(load_text(R"((module (import "driftwood" "look" (func $look (result i32))) (memory 1)
    (func (export "look") (result i32) (call $look)) (func (export "stop") unreachable)))"))
          .value();
  auto guest = std::move(shared_runtime().instantiate(module, imports, {})).value();
  EXPECT_EQ(guest->call("look", {})->at(0), 101 * static_cast<uint64_t>(Code::kFailedPrecondition));
  EXPECT_TRUE(guest->freeze_memory().is_ok());
  EXPECT_FALSE(guest->call("stop", {}).is_ok());
  EXPECT_EQ(guest->freeze_memory().status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(guest->fork_memory().status().code(), Code::kFailedPrecondition);
}

TEST(FreezeMemory, RestoresAfterABigGrowth) {
  auto module = std::move(load_text(R"((module (memory (export "memory") 1)
    (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))))"))
                    .value();
  auto guest = std::move(shared_runtime().instantiate(module, {}, {})).value();
  ASSERT_EQ(call1(*guest, "grow", 4000), 1u);
  const uint64_t size = 4001 * kUnit;
  guest->memory().base()[size - 1] = 7;
  guest->memory().base()[size / 2] = 8;
  guest->memory().base()[0] = 9;
  const FrozenMemory frozen = std::move(guest->freeze_memory()).value();
  EXPECT_EQ(patched_bytes(frozen), 3 * region::os_page_bytes());
  for (int i = 0; i < 3; ++i) {  // the last fork has an image of its own
    auto restored = i == 0 ? revive(frozen, {}, module) : fork_of(*guest, module);
    ASSERT_EQ(restored->memory_bytes(), size);
    EXPECT_EQ(restored->memory().base()[size - 1], 7);
    EXPECT_EQ(restored->memory().base()[size / 2], 8);
    EXPECT_EQ(restored->memory().base()[0], 9);
    if (i == 1) std::memset(guest->memory().base() + size / 4, 5, size / 7);
    if (i == 2) {
      EXPECT_EQ(std::memcmp(restored->memory().base(), guest->memory().base(), size), 0);
      EXPECT_EQ(call1(*restored, "grow", 3), 4001u);
    }
  }
}

}  // namespace
}  // namespace driftwood::wasm
