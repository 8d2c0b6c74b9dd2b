#include "graph/builder.h"

namespace driftwood::graph {

BufferId Builder::buffer(std::string name, Rows rows, int64_t width, BufferId updates) {
  graph_.buffers.push_back({std::move(name), rows, width, updates});
  return static_cast<BufferId>(graph_.buffers.size() - 1);
}

BufferId Builder::embed(std::string table, int64_t width) {
  const BufferId out = buffer("embedding", Rows::kTokens, width);
  graph_.ops.push_back(EmbedOp{std::move(table), out});
  return out;
}

Builder::Normed Builder::rms_norm(BufferId x, BufferId residual, std::string weight, float epsilon,
                                  const std::string& name) {
  const Rows rows = at(x).rows;
  const int64_t width = at(x).width;
  const BufferId sum = residual == kNoBuffer ? kNoBuffer : buffer(name + ".sum", rows, width, x);
  const BufferId out = buffer(name, rows, width);
  graph_.ops.push_back(RmsNormOp{x, residual, sum, std::move(weight), epsilon, out});
  return {sum == kNoBuffer ? x : sum, out};
}

BufferId Builder::matmul(BufferId x, std::vector<MatmulPart> parts, const std::string& name) {
  int64_t width = 0;
  for (MatmulPart& part : parts) {
    part.column = width;
    width += part.rows;
  }
  const BufferId out = buffer(name, at(x).rows, width);
  graph_.ops.push_back(MatmulOp{x, std::move(parts), out});
  return out;
}

Builder::RopeTable Builder::rope_table(int64_t half, float scale) {
  const BufferId cosine = buffer("rope.cosine", Rows::kTokens, half);
  const BufferId sine = buffer("rope.sine", Rows::kTokens, half);
  graph_.ops.push_back(RopeTableOp{half, scale, cosine, sine});
  return {cosine, sine};
}

BufferId Builder::rope(BufferId x, int64_t column, int64_t heads, int64_t head_dim, RopeStyle style,
                       RopeTable table, const std::string& name) {
  const BufferId out = buffer(name, at(x).rows, at(x).width, x);
  graph_.ops.push_back(RopeOp{x, column, heads, head_dim, style, table.cosine, table.sine, out});
  return out;
}

void Builder::kv_store(int64_t layer, Columns k, Columns v) { graph_.ops.push_back(KvStoreOp{layer, k, v}); }

BufferId Builder::attention(int64_t layer, Columns q, int64_t heads, float scale, int64_t window,
                            const std::string& name) {
  const BufferId out = buffer(name, at(q.buffer).rows, q.width);
  graph_.ops.push_back(AttentionOp{layer, q, heads, scale, window, out});
  return out;
}

BufferId Builder::swiglu(Columns gate, Columns up, const std::string& name) {
  const BufferId out = buffer(name, at(gate.buffer).rows, gate.width);
  graph_.ops.push_back(SwigluOp{gate, up, out});
  return out;
}

BufferId Builder::add_rows(BufferId a, BufferId b, const std::string& name) {
  const BufferId out = buffer(name, Rows::kLogits, at(a).width);
  graph_.ops.push_back(AddRowsOp{a, b, out});
  return out;
}

}  // namespace driftwood::graph
