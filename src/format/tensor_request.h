// What a model asks of a checkpoint: the tensors it needs, under the keys its graph uses. Architectures
// (src/model) write requests, weight sources (src/weights) serve them; neither knows the other.
#pragma once

#include <string>
#include <vector>

namespace driftwood::format {

// A matrix in packed form. Several tensors are joined by rows (q, k, v into one matrix); they must have the
// same packed layout and columns. Rows keep the file's order: rotary row order is left to RopeStyle.
struct MatrixRequest {
  std::string key;                   // "blk.0.attn_q", unique
  std::vector<std::string> tensors;  // checkpoint names
};

// A dense vector of any of f32, f16, bf16; becomes f32.
struct VectorRequest {
  std::string key;
  std::string tensor;
};

}  // namespace driftwood::format
