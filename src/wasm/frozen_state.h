// The parts of a guest that a snapshot holds beside what the host keeps for it: linear memory and mutable
// globals.
//
// Plain values. At a rest point (no call running) Instance::globals() and Instance::freeze_memory() are all
// of a guest's state, if its module has no snapshot blockers and no file is open; Runtime::restore makes an
// instance of them that goes on as the frozen one would have.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "region/region.h"

namespace driftwood::wasm {

enum class GlobalType : uint8_t { kI32, kI64, kF32, kF64, kV128 };
const char* global_type_name(GlobalType type);

// The value of one mutable global: its bits, low part first; what the type does not have is zero.
struct GlobalValue {
  uint32_t index = 0;  // in the module's index space of globals
  GlobalType type = GlobalType::kI32;
  uint64_t bits = 0;
  uint64_t high_bits = 0;  // v128 only
  bool operator==(const GlobalValue&) const = default;
};

// Linear memory as bytes of regular files, which are mapped and must stay as they are while an instance lives
// on them (cutting one ends the process, rewriting it shows through). Without an owner the descriptors are
// needed during the restore only, and what is frozen or forked of the instance has another image.
struct MemoryImage {
  std::vector<region::FileImage> pieces;  // in order; each length a multiple of 64 KiB; fd -1: zeros
  uint64_t memory_bytes = 0;              // the memory's whole size, zero after the pieces; 0: their sum
  std::shared_ptr<const void> owner;      // keeps the descriptors open

  uint64_t image_bytes() const;  // sum of the pieces' lengths
};

// Bytes that differ from the image: [offset, offset + bytes.size()), whole OS pages.
struct MemoryPatch {
  uint64_t offset = 0;
  std::span<const uint8_t> bytes;
};

// A guest's whole memory at a rest point as a value. Patches point into `patch_owner` (a copy) or into the
// memory of the guest itself, which must not run or go before they have been used.
struct FrozenMemory {
  MemoryImage image;
  std::vector<MemoryPatch> patches;  // ascending, disjoint
  std::shared_ptr<const void> patch_owner;
};

}  // namespace driftwood::wasm
