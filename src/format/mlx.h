// MLX affine quantisation: stored tensors to descriptors.
//
// config.json has "quantization": {"group_size", "bits", "mode": "affine"} and may give a module its own
// settings under the module's name ({...}, or false for "not quantised"). A quantised module X is stored as
// X.weight (U32 words of codes, low bits first), X.scales and X.biases; a weight is scale * code + bias. The
// logical row has words * 32 / bits values.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "format/checkpoint.h"
#include "format/safetensors.h"

namespace driftwood::format {

// True if the config speaks of MLX quantisation.
bool is_mlx_config(const nlohmann::json& config);

// invalid_argument or unimplemented if the config's quantisation, of any maker, is not one that is read.
Status check_quantisation(const nlohmann::json& config, const std::string& config_file);

// Joins weight, scales and biases; tensors without scales stay dense. `file` stands for the model in
// messages.
Result<std::vector<TensorInfo>> join_mlx(const std::vector<StoredTensor>& stored,
                                         const nlohmann::json& config, const std::string& file);

// Every stored tensor as dense.
std::vector<TensorInfo> dense_tensors(const std::vector<StoredTensor>& stored);

}  // namespace driftwood::format
