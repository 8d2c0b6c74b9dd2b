#include "engine/macs_per_token.h"

#include <variant>

namespace driftwood::engine {

Result<MacsPerToken> macs_per_prompt_token(const LoadedModel& model) {
  DW_ASSIGN_OR_RETURN(const graph::Graph graph, model.architecture->build(*model.checkpoint, model.config));
  MacsPerToken macs;
  for (const graph::Op& op : graph.ops) {
    const auto* matmul = std::get_if<graph::MatmulOp>(&op);
    if (matmul == nullptr || matmul->out == graph.logits) continue;
    for (const graph::MatmulPart& part : matmul->parts) {
      DW_ASSIGN_OR_RETURN(const PackedMatrix matrix, model.weights->acquire(part.weight));
      (is_quantised(matrix.layout) ? macs.int8 : macs.f32) += matrix.rows * matrix.cols;
      model.weights->release(part.weight);
    }
  }
  return macs;
}

}  // namespace driftwood::engine
