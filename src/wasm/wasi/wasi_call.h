// WasiCall: one WASI call of a guest: its memory by checked access, its state, and the way to end it.
//
// Every guest pointer is an untrusted u32; load, store and range check [pointer, pointer + length) against the
// memory's current size without overflow. A function that finds a bad one returns kFault.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "wasm/host_call.h"
#include "wasm/runtime.h"
#include "wasm/wasi/wasi_state.h"
#include "wasm/wasi/wasi_types.h"

namespace driftwood::wasm {

inline constexpr uint32_t kMaxPathBytes = 4096;
inline constexpr uint32_t kMaxIovecs = 1024;

class WasiCall {
 public:
  WasiCall(HostCall& host, Instance& instance) : host_(host), instance_(instance), state_(host.wasi()) {}

  HostCall& host() { return host_; }
  WasiState& state() { return state_; }

  uint8_t* range(uint32_t pointer, uint64_t length) { return instance_.bytes(pointer, length); }

  template <typename T>
  bool load(uint32_t pointer, T* value) {
    const uint8_t* from = instance_.bytes(pointer, sizeof(T));
    if (from == nullptr) return false;
    std::memcpy(value, from, sizeof(T));
    return true;
  }
  template <typename T>
  bool store(uint32_t pointer, T value) {
    uint8_t* to = instance_.bytes(pointer, sizeof(T));
    if (to == nullptr) return false;
    std::memcpy(to, &value, sizeof(T));
    return true;
  }

  // A path argument: kFault, kNametoolong, kInval (a NUL inside), kNoent (empty).
  Errno path(uint32_t pointer, uint32_t length, std::string* out);

  // The descriptor `fd` with every right of `needed`: kBadf, kNotcapable.
  Errno descriptor(uint32_t fd, uint64_t needed, WasiDescriptor** out);
  // Likewise, and it must be a folder: kNotdir.
  Errno folder(uint32_t fd, uint64_t needed, WasiDescriptor** out);

 private:
  HostCall& host_;
  Instance& instance_;
  WasiState& state_;
};

// The WASI code for an errno of the system; what leaves the granted folder is kNotcapable.
Errno errno_of(int system_error);

inline uint32_t u32(uint64_t slot) { return static_cast<uint32_t>(slot); }

#define DW_WASI_TRY(expr)                                            \
  do {                                                               \
    const ::driftwood::wasm::Errno dw_errno_ = (expr);               \
    if (dw_errno_ != ::driftwood::wasm::Errno::kSuccess) return dw_errno_; \
  } while (0)

}  // namespace driftwood::wasm
