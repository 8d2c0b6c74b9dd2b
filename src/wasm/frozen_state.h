// The parts of a guest that a snapshot holds beside what the host keeps for it: linear memory and mutable
// globals.
//
// Plain values. At a rest point (no call running) Instance::globals() and the bytes of Instance::memory() are
// all of a guest's state, if its module has no snapshot blockers and no file is open; Runtime::restore makes
// an instance of them that goes on as the frozen one would have.
#pragma once

#include <cstdint>
#include <string>

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

// Linear memory as bytes of a regular file, which is mapped and must stay as it is while an instance lives on
// it (cutting it ends the process, rewriting it shows through). The descriptor is needed only during the
// restore.
struct MemoryImage {
  int fd = -1;
  uint64_t file_offset = 0;   // a multiple of 64 KiB
  uint64_t length_bytes = 0;  // a multiple of 64 KiB; 0 (for a memory without pages) needs no file
  uint64_t memory_bytes = 0;  // the memory's whole size, zero after the image; 0: length_bytes
};

}  // namespace driftwood::wasm
