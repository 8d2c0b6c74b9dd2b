// Signatures: from Wasmtime's types to ours and into words, and the raw value slots at the boundary.
#pragma once

#include <wasmtime.h>

#include <optional>
#include <string>

#include "wasm/runtime.h"

namespace driftwood::wasm {

// A boundary function has at most this many; WASI's longest has nine parameters.
inline constexpr size_t kMaxParams = 16;
inline constexpr size_t kMaxResults = 4;

// "(i32, i64) -> i32"; "()" without results.
std::string signature_text(const Signature& signature);
std::string function_type_text(const wasm_functype_t* type);

// Empty if a type is not i32, i64, f32 or f64 or there are too many.
std::optional<Signature> signature_of(const wasm_functype_t* type);

// For defining a host function. The caller deletes it.
wasm_functype_t* new_function_type(const Signature& signature);

// One slot as the contract wants it: i32 sign-extended, f32 in the low half. Wasmtime defines only the bytes
// that the type has.
inline uint64_t slot_bits(const wasmtime_val_raw_t& slot, ValueType type) {
  switch (type) {
    case ValueType::kI32:
      return static_cast<uint64_t>(static_cast<int64_t>(slot.i32));
    case ValueType::kF32:
      return static_cast<uint32_t>(slot.i32);
    default:
      return static_cast<uint64_t>(slot.i64);
  }
}

inline void set_slot(wasmtime_val_raw_t* slot, ValueType type, uint64_t bits) {
  const bool narrow = type == ValueType::kI32 || type == ValueType::kF32;
  slot->i64 = static_cast<int64_t>(narrow ? bits & 0xffffffffu : bits);
}

}  // namespace driftwood::wasm
