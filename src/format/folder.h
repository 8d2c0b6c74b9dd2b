// A Hugging Face or MLX model folder as a Checkpoint: config.json, then model.safetensors or the shards that
// model.safetensors.index.json names (docs/formats/models.md).
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "format/checkpoint.h"

namespace driftwood::format {

Result<std::shared_ptr<const Checkpoint>> open_folder(const std::string& path);

// A .safetensors file whose folder holds config.json: that file alone with that config.
Result<std::shared_ptr<const Checkpoint>> open_folder_file(const std::string& file);

}  // namespace driftwood::format
