#include "wasm/frozen_state.h"

namespace driftwood::wasm {

const char* global_type_name(GlobalType type) {
  switch (type) {
    case GlobalType::kI32:
      return "i32";
    case GlobalType::kI64:
      return "i64";
    case GlobalType::kF32:
      return "f32";
    case GlobalType::kF64:
      return "f64";
    case GlobalType::kV128:
      return "v128";
  }
  return "unknown";
}

uint64_t MemoryImage::image_bytes() const {
  uint64_t bytes = 0;
  for (const region::FileImage& piece : pieces) bytes += piece.length;
  return bytes;
}

}  // namespace driftwood::wasm
