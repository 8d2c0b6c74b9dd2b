#include "graph/graph.h"

namespace driftwood::graph {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;  // clang before 17 does not deduce it

void push_if(std::vector<BufferId>* list, BufferId id) {
  if (id != kNoBuffer) list->push_back(id);
}

}  // namespace

const char* op_name(const Op& op) {
  return std::visit(Overloaded{
                        [](const EmbedOp&) { return "embed"; },
                        [](const RmsNormOp&) { return "rms_norm"; },
                        [](const MatmulOp&) { return "matmul"; },
                        [](const RopeTableOp&) { return "rope_table"; },
                        [](const RopeOp&) { return "rope"; },
                        [](const KvStoreOp&) { return "kv_store"; },
                        [](const AttentionOp&) { return "attention"; },
                        [](const SwigluOp&) { return "swiglu"; },
                        [](const AddRowsOp&) { return "add_rows"; },
                    },
                    op);
}

OpUses op_uses(const Op& op) {
  OpUses uses;
  std::visit(Overloaded{
                 [&](const EmbedOp& o) { uses.writes = {o.out}; },
                 [&](const RmsNormOp& o) {
                   uses.reads = {o.x};
                   push_if(&uses.reads, o.residual);
                   push_if(&uses.writes, o.sum);
                   uses.writes.push_back(o.out);
                 },
                 [&](const MatmulOp& o) {
                   uses.reads = {o.x};
                   uses.writes = {o.out};
                 },
                 [&](const RopeTableOp& o) { uses.writes = {o.cosine, o.sine}; },
                 [&](const RopeOp& o) {
                   uses.reads = {o.x, o.cosine, o.sine};
                   uses.writes = {o.out};
                 },
                 [&](const KvStoreOp& o) { uses.reads = {o.k.buffer, o.v.buffer}; },
                 [&](const AttentionOp& o) {
                   uses.reads = {o.q.buffer};
                   uses.writes = {o.out};
                 },
                 [&](const SwigluOp& o) {
                   uses.reads = {o.gate.buffer, o.up.buffer};
                   uses.writes = {o.out};
                 },
                 [&](const AddRowsOp& o) {
                   uses.reads = {o.a, o.b};
                   uses.writes = {o.out};
                 },
             },
             op);
  return uses;
}

BufferId storage_of(const Graph& graph, BufferId id) {
  while (graph.buffers[static_cast<size_t>(id)].updates != kNoBuffer) {
    id = graph.buffers[static_cast<size_t>(id)].updates;
  }
  return id;
}

std::string to_string(const Graph& graph) {
  auto label = [&](BufferId id) {
    const Buffer& b = graph.buffers[static_cast<size_t>(id)];
    return b.name + "[" + (b.rows == Rows::kTokens ? "T" : "R") + "," + std::to_string(b.width) + "]";
  };
  std::string text;
  for (const Op& op : graph.ops) {
    const OpUses uses = op_uses(op);
    text += op_name(op);
    for (BufferId id : uses.reads) text += " " + label(id);
    text += " ->";
    for (BufferId id : uses.writes) text += " " + label(id);
    if (const auto* matmul = std::get_if<MatmulOp>(&op)) {
      for (const MatmulPart& part : matmul->parts) text += " {" + part.weight + "}";
    }
    text += "\n";
  }
  return text;
}

}  // namespace driftwood::graph
