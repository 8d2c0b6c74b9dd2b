// The type numbers of GGUF tensors: names and block sizes of all, encodings of those that are read.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "format/checkpoint.h"

namespace driftwood::format {

struct GgmlType {
  uint32_t id;
  const char* name;
  int block_elements;
  int block_bytes;
  // Set if tensors of this type are read.
  std::optional<Encoding> encoding;
  DType dtype = DType::kF32;  // kDense only
};

// Null for a number that names no type.
const GgmlType* find_ggml_type(uint32_t id);

}  // namespace driftwood::format
