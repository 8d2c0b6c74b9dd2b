// The fingerprint of a checkpoint: docs/formats/models.md states what goes in.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "format/checkpoint.h"

namespace driftwood::format {

// Named texts that are hashed in whole (metadata, config.json, tokenizer.json), then every tensor.
struct FingerprintText {
  std::string name;
  std::span<const uint8_t> bytes;
};
std::string fingerprint(FileFormat format, const std::vector<FingerprintText>& texts,
                        const std::vector<TensorInfo>& tensors);

}  // namespace driftwood::format
