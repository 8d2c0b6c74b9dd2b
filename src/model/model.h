// Model architectures: one file per architecture with its names, tensor map and the function that builds its graph;
// a registry finds them by name. Nowhere else is there a switch on architecture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"
#include "graph/graph.h"
#include "tensor/op_args.h"
#include "weights/weight_source.h"

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
  // Rotary embedding: inv_freq after scaling (default, linear, llama3, ...), computed once in double.
  RopeStyle rope_style = RopeStyle::kHalf;
  std::vector<float> rope_inv_freq;  // [rotary dims / 2]
  float rope_attention_scale = 1.0f;
  std::string rope_identity;   // text form of every rope parameter, part of a snapshot's identity
};

struct Architecture {
  std::string name;
  // Does this checkpoint belong to it? (GGUF general.architecture or config.json model_type / architectures)
  bool (*matches)(const format::Checkpoint&);
  Result<ModelConfig> (*configure)(const format::Checkpoint&);
  // Tensors to pack, with the keys the graph uses.
  Status (*requests)(const format::Checkpoint&, const ModelConfig&, std::vector<weights::MatrixRequest>*,
                     std::vector<weights::VectorRequest>*);
  Result<graph::Graph> (*build)(const ModelConfig&);
};

// unimplemented naming the architecture found and those supported.
Result<const Architecture*> find_architecture(const format::Checkpoint& checkpoint);
std::vector<std::string> architecture_names();

}  // namespace driftwood::model
