// Model architectures: one file per architecture with its names, tensor map and the function that builds its
// graph; a registry finds them by name. Nowhere else is there a switch on architecture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"
#include "format/tensor_request.h"
#include "graph/graph.h"
#include "model/rope.h"
#include "tensor/op_args.h"

namespace driftwood::model {

// What every part above the graph needs to know of a model.
struct ModelConfig {
  std::string architecture;    // registry name, "llama"
  int64_t vocab_size = 0;      // V
  int64_t layers = 0;          // L
  int64_t width = 0;           // E
  int64_t feed_forward = 0;    // F
  int64_t heads = 0;           // H
  int64_t kv_heads = 0;        // Hkv
  int64_t head_dim = 0;        // D
  int64_t context_length = 0;  // trained limit
  float norm_epsilon = 1e-5f;
  bool tied_head = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  RopeStyle rope_style = RopeStyle::kHalf;
  RopeParameters rope;        // rope_frequencies(rope, context) gives a session its frequencies
  std::string rope_identity;  // text form of every rope parameter, part of a snapshot's identity
};

struct Architecture {
  std::string name;
  // Does this checkpoint belong to it? (GGUF general.architecture or config.json model_type / architectures)
  bool (*matches)(const format::Checkpoint&);
  Result<ModelConfig> (*configure)(const format::Checkpoint&);
  // Tensors to pack, with the keys the graph uses. Checks that each is there with the shape the configuration
  // says.
  Status (*requests)(const format::Checkpoint&, const ModelConfig&, std::vector<format::MatrixRequest>*,
                     std::vector<format::VectorRequest>*);
  // The checkpoint says which matrices can be joined; nothing else of it is read.
  Result<graph::Graph> (*build)(const format::Checkpoint&, const ModelConfig&);
};

// unimplemented naming the architecture found and those supported.
Result<const Architecture*> find_architecture(const format::Checkpoint& checkpoint);
std::vector<std::string> architecture_names();

}  // namespace driftwood::model
