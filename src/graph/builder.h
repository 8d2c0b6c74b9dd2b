// Builder: writes a Graph op by op. Each call defines the op's output buffers and returns them; names are
// derived from the layer. It checks nothing: validate() (graph.h) does, once, on the whole.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace driftwood::graph {

class Builder {
 public:
  explicit Builder(KvShape kv) { graph_.kv = kv; }

  BufferId embed(std::string table, int64_t width);

  struct Normed {
    BufferId sum;  // x, or x + residual
    BufferId out;
  };
  // residual may be kNoBuffer.
  Normed rms_norm(BufferId x, BufferId residual, std::string weight, float epsilon, const std::string& name);

  // Columns are laid out in the order of `parts`; their `column` is filled in here.
  BufferId matmul(BufferId x, std::vector<MatmulPart> parts, const std::string& name);

  struct RopeTable {
    BufferId cosine;
    BufferId sine;
  };
  RopeTable rope_table(int64_t half, float scale);
  BufferId rope(BufferId x, int64_t column, int64_t heads, int64_t head_dim, RopeStyle style, RopeTable table,
                const std::string& name);
  void kv_store(int64_t layer, Columns k, Columns v);
  BufferId attention(int64_t layer, Columns q, int64_t heads, float scale, int64_t window,
                     const std::string& name);
  BufferId swiglu(Columns gate, Columns up, const std::string& name);
  BufferId add_rows(BufferId a, BufferId b, const std::string& name);

  Graph finish(BufferId logits) {
    graph_.logits = logits;
    return std::move(graph_);
  }

 private:
  BufferId buffer(std::string name, Rows rows, int64_t width, BufferId updates = kNoBuffer);
  const Buffer& at(BufferId id) const { return graph_.buffers[static_cast<size_t>(id)]; }

  Graph graph_;
};

}  // namespace driftwood::graph
