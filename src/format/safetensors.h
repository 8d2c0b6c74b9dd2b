// safetensors: bytes to checked tensor descriptors.
//
// Layout: header length u64, JSON header {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...,
// "__metadata__": {string: string}}, data. Checked: header length against file and limit, UTF-8 and JSON, no
// duplicate name, known dtype, shape times dtype equal to the byte length, offsets contiguous from 0 to the
// end of the file (no overlap, no hole, nothing left over), as the format demands. Errors: invalid_argument,
// data_loss (truncated), unimplemented (a dtype that is not read), with file and tensor.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace driftwood::format {

inline constexpr uint64_t kSafetensorsHeaderBytes = 100'000'000;
inline constexpr size_t kSafetensorsDimensions = 8;

struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const uint8_t> bytes;  // into the bytes given
};

// `name` stands for the file in messages. Tensors in the order of their data. `metadata`, if wanted, gets
// what
// "__metadata__" holds.
Result<std::vector<StoredTensor>> parse_safetensors(std::span<const uint8_t> bytes, const std::string& name,
                                                    std::map<std::string, std::string>* metadata = nullptr);

}  // namespace driftwood::format
