// The safetensors files of a model folder: one model.safetensors, or the shards of
// model.safetensors.index.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/safetensors.h"
#include "os/mapped_file.h"

namespace driftwood::format {

struct ShardSet {
  std::vector<std::shared_ptr<const os::MappedFile>> files;
  std::vector<StoredTensor> tensors;  // spans into files
};

Result<ShardSet> open_single_shard(const std::string& path);

// An index of {"weight_map": {tensor: file name}}. Tensors that the shards hold and the index does not name
// are left out, as its makers' loaders do.
Result<ShardSet> open_sharded(const std::string& folder, const std::string& index_file);

// The folder's weights, whichever way they are stored; says what the folder holds instead if there are none.
Result<ShardSet> open_folder_weights(const std::string& folder);

}  // namespace driftwood::format
