// GGUF v2 and v3: bytes to checked metadata and tensor descriptors.
//
// Layout: "GGUF", version u32, tensor count u64, key count u64; keys (string, value type u32, value); tensors
// (string, dimension count u32, dimensions u64 innermost first, type u32, offset u64); padding to the
// alignment (key "general.alignment", 32 if absent); tensor data, each tensor aligned, in any order but
// without overlap and with alignment padding only between them. Little-endian. A string is a u64 length and
// bytes.
//
// Nothing here trusts a number of the file: limits below, every size is checked against the bytes at hand.
// Errors: invalid_argument (not this format, or a value that breaks its rules), data_loss (truncated),
// unimplemented (a type or version that is known and not read), each with file, key or tensor, and value.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"
#include "os/mapped_file.h"

namespace driftwood::format {

struct GgufLimits {
  static constexpr uint64_t kTensors = 1u << 20;
  static constexpr uint64_t kKeys = 1u << 16;
  static constexpr uint64_t kKeyBytes = 65535;
  static constexpr uint64_t kTensorNameBytes = 255;
  static constexpr uint64_t kArrayValues = 8u << 20;  // of all arrays together
  static constexpr int kArrayDepth = 4;
  static constexpr uint32_t kAlignment = 1u << 20;
  static constexpr uint64_t kDimension = uint64_t{1} << 40;
};

struct GgufContents {
  uint32_t version = 0;
  uint32_t alignment = 32;
  std::map<std::string, MetadataValue> metadata;
  std::vector<TensorInfo> tensors;  // file order; spans point into the bytes given
  size_t metadata_begin = 0;        // the bytes of all keys: [metadata_begin, metadata_end)
  size_t metadata_end = 0;
};

// `name` stands for the file in messages.
Result<GgufContents> parse_gguf(std::span<const uint8_t> bytes, const std::string& name);

Result<std::shared_ptr<const Checkpoint>> open_gguf(std::shared_ptr<const os::MappedFile> file);

}  // namespace driftwood::format
