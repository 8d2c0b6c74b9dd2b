// What the tests of memory as a value share: its bytes, and a memory on two files with zeros between.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "wasm/freeze_for_test.h"

namespace driftwood::wasm {

inline constexpr uint64_t kUnit = 65536;

// All bytes that a frozen memory stands for.
inline std::vector<uint8_t> bytes_of(const FrozenMemory& memory) {
  const uint64_t size =
      memory.image.memory_bytes == 0 ? memory.image.image_bytes() : memory.image.memory_bytes;
  std::vector<uint8_t> bytes(size);
  uint64_t at = 0;
  for (const region::FileImage& piece : memory.image.pieces) {
    if (piece.fd != region::kNoFile) {
      const ssize_t got = pread(piece.fd, bytes.data() + at, piece.length, static_cast<off_t>(piece.offset));
      DW_CHECK(got == static_cast<ssize_t>(piece.length), "reading a piece");
    }
    at += piece.length;
  }
  for (const MemoryPatch& patch : memory.patches) {
    std::memcpy(bytes.data() + patch.offset, patch.bytes.data(), patch.bytes.size());
  }
  return bytes;
}

inline std::vector<region::ByteRange> ranges_of(const FrozenMemory& memory) {
  std::vector<region::ByteRange> ranges;
  for (const MemoryPatch& patch : memory.patches) ranges.push_back({patch.offset, patch.bytes.size()});
  return ranges;
}

inline uint64_t patched_bytes(const FrozenMemory& memory) {
  uint64_t bytes = 0;
  for (const MemoryPatch& patch : memory.patches) bytes += patch.bytes.size();
  return bytes;
}

// An instance of the stateful module, or of another.
inline std::unique_ptr<Instance> revive(const FrozenMemory& memory, const std::vector<GlobalValue>& globals,
                                        std::shared_ptr<Module> module = stateful_module()) {
  auto made = shared_runtime().restore(std::move(module), {}, {}, memory, globals);
  DW_CHECK(made.is_ok(), made.status().message().c_str());
  return std::move(made).value();
}

inline std::unique_ptr<Instance> fork_of(Instance& parent,
                                         std::shared_ptr<Module> module = stateful_module()) {
  auto memory = parent.fork_memory();
  DW_CHECK(memory.is_ok(), memory.status().message().c_str());
  return revive(*memory, std::move(parent.globals()).value(), std::move(module));
}

// Six units: one of a file, zeros, two of another (the second a hole of it), zeros, the first file's next.
struct TwoFiles {
  TwoFiles() {
    for (size_t i = 0; i < 3 * kUnit; ++i) noise.push_back(static_cast<uint8_t>(i * i / 77 + i));
    auto first = std::make_shared<TestImageFile>(std::span(noise).first(2 * kUnit), kUnit);
    auto second = std::make_shared<TestImageFile>(std::span(noise).last(kUnit), 0);
    DW_CHECK(ftruncate(second->fd, 2 * kUnit) == 0, "making a hole");
    image.pieces = {{first->fd, kUnit, kUnit},
                    {region::kNoFile, 0, kUnit},
                    {second->fd, 0, 2 * kUnit},
                    {region::kNoFile, 0, kUnit},
                    {first->fd, 2 * kUnit, kUnit}};
    image.memory_bytes = 8 * kUnit;
    image.owner = std::make_shared<std::pair<decltype(first), decltype(second)>>(first, second);
    bytes.resize(8 * kUnit);
    std::memcpy(bytes.data(), noise.data(), kUnit);
    std::memcpy(bytes.data() + 2 * kUnit, noise.data() + 2 * kUnit, kUnit);
    std::memcpy(bytes.data() + 5 * kUnit, noise.data() + kUnit, kUnit);
  }
  std::unique_ptr<Instance> instance() const {
    return revive(FrozenMemory{image, {}, nullptr}, std::move(fresh()->globals()).value());
  }
  std::vector<uint8_t> noise;
  MemoryImage image;
  std::vector<uint8_t> bytes;  // of the whole memory
};

}  // namespace driftwood::wasm
