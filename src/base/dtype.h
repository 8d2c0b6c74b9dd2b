// DType: element types of dense tensors, with their names in the formats we read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace driftwood {

enum class DType : uint8_t { kF32, kF16, kBF16, kF64, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool };

// Bytes of one element.
constexpr size_t dtype_size(DType type) {
  switch (type) {
    case DType::kF64: case DType::kI64: case DType::kU64: return 8;
    case DType::kF32: case DType::kI32: case DType::kU32: return 4;
    case DType::kF16: case DType::kBF16: case DType::kI16: case DType::kU16: return 2;
    case DType::kI8: case DType::kU8: case DType::kBool: return 1;
  }
  return 0;
}

// The safetensors name: "F32", "BF16", "I64", ...
constexpr std::string_view dtype_name(DType type) {
  switch (type) {
    case DType::kF32: return "F32";
    case DType::kF16: return "F16";
    case DType::kBF16: return "BF16";
    case DType::kF64: return "F64";
    case DType::kI8: return "I8";
    case DType::kI16: return "I16";
    case DType::kI32: return "I32";
    case DType::kI64: return "I64";
    case DType::kU8: return "U8";
    case DType::kU16: return "U16";
    case DType::kU32: return "U32";
    case DType::kU64: return "U64";
    case DType::kBool: return "BOOL";
  }
  return "?";
}

}  // namespace driftwood
