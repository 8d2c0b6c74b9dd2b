// Binder: turns a graph into a GraphRunner's steps. Plans the arena, acquires weights, resolves every buffer
// to a pointer. Lives for the length of GraphRunner::create().
#pragma once

#include <map>
#include <string>

#include "engine/graph_runner.h"

namespace driftwood::engine {

class GraphRunner::Binder {
 public:
  Binder(const graph::Graph& graph, const kv::KvLayout& layout, uint8_t* pool, GraphRunner* runner)
      : graph_(graph), layout_(layout), pool_(pool), runner_(*runner) {}

  Status bind();

 private:
  Status acquire(const std::string& key);
  Status acquire_all();
  Status make_arena();
  void add_matmul(const MatmulBatchArgs& whole, graph::Rows rows, bool head);
  void link_matmuls();
  void open_reader();

  const graph::Buffer& at(graph::BufferId id) const { return graph_.buffers[static_cast<size_t>(id)]; }
  const graph::Placement& place(graph::BufferId id) const {
    return runner_.plan_.placements[static_cast<size_t>(id)];
  }
  // Null where the part does not exist.
  float* f32(graph::BufferId id) const;
  ActivationsQ8 q8(graph::BufferId id) const;
  // The matrix, checked against the graph's shape.
  Result<PackedMatrix> matrix(const std::string& key, int64_t rows, int64_t cols) const;
  Result<const float*> vector(const std::string& key, int64_t width) const;

  Result<Arguments> arguments(const graph::EmbedOp& op);
  Result<Arguments> arguments(const graph::RmsNormOp& op);
  Result<Arguments> arguments(const graph::MatmulOp& op);
  Result<Arguments> arguments(const graph::RopeTableOp& op);
  Result<Arguments> arguments(const graph::RopeOp& op);
  Result<Arguments> arguments(const graph::KvStoreOp& op);
  Result<Arguments> arguments(const graph::AttentionOp& op);
  Result<Arguments> arguments(const graph::SwigluOp& op);
  Result<Arguments> arguments(const graph::AddRowsOp& op);

  const graph::Graph& graph_;
  const kv::KvLayout& layout_;
  uint8_t* pool_;
  GraphRunner& runner_;
  std::map<std::string, PackedMatrix> matrices_;
};

}  // namespace driftwood::engine
