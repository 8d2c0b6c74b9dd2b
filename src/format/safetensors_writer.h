// Writes a small safetensors file: 8-byte little-endian header length, JSON header padded with spaces to 8 bytes,
// then the tensors in the order given, without gaps. The file appears whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace driftwood::format {

struct OutputTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // exactly shape * dtype_size(dtype)
};

Status write_safetensors(const std::string& path, const std::vector<OutputTensor>& tensors,
                         const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace driftwood::format
