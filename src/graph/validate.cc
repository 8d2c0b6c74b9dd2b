// The validator of graph.h: structure first (so that shapes can be looked up safely), then the shapes of each
// op.
#include <unordered_set>

#include "graph/graph.h"

namespace driftwood::graph {
namespace {

// Where a failure happened, and the tables the checks share.
class Checker {
 public:
  explicit Checker(const Graph& graph)
      : graph_(graph), defined_(graph.buffers.size(), false), retired_(graph.buffers.size(), false) {}

  Status run() {
    DW_RETURN_IF_ERROR(check_buffers());
    for (index_ = 0; index_ < graph_.ops.size(); ++index_) {
      const Op& op = graph_.ops[index_];
      DW_RETURN_IF_ERROR(check_assignment(op));
      DW_RETURN_IF_ERROR(std::visit([this](const auto& o) { return check(o); }, op));
    }
    if (!in_range(graph_.logits) || !defined_[static_cast<size_t>(graph_.logits)]) {
      return internal_error("graph: the logits buffer is never defined");
    }
    if (at(graph_.logits).rows != Rows::kLogits) return internal_error("graph: logits must have logit rows");
    return Status::ok();
  }

 private:
  bool in_range(BufferId id) const { return id >= 0 && static_cast<size_t>(id) < graph_.buffers.size(); }
  const Buffer& at(BufferId id) const { return graph_.buffers[static_cast<size_t>(id)]; }

  Status fail(const std::string& what) const {
    return internal_error("graph: op " + std::to_string(index_) + " (" + op_name(graph_.ops[index_]) +
                          "): " + what);
  }

  Status check_buffers() const {
    for (size_t i = 0; i < graph_.buffers.size(); ++i) {
      const Buffer& b = graph_.buffers[i];
      if (b.width <= 0) return internal_error("graph: buffer " + b.name + " has no width");
      if (b.updates == kNoBuffer) continue;
      // Updating only earlier buffers keeps the chain free of loops.
      if (!in_range(b.updates) || static_cast<size_t>(b.updates) >= i) {
        return internal_error("graph: buffer " + b.name + " updates no earlier buffer");
      }
      if (at(b.updates).width != b.width || at(b.updates).rows != b.rows) {
        return internal_error("graph: buffer " + b.name + " differs in shape from what it updates");
      }
    }
    return Status::ok();
  }

  Status check_assignment(const Op& op) {
    const OpUses uses = op_uses(op);
    for (BufferId id : uses.reads) {
      if (!in_range(id)) return fail("reads a buffer that does not exist");
      if (!defined_[static_cast<size_t>(id)]) return fail("reads " + at(id).name + " before it is defined");
      if (retired_[static_cast<size_t>(id)])
        return fail("reads " + at(id).name + " after it was updated in place");
    }
    for (BufferId id : uses.writes) {
      if (!in_range(id)) return fail("writes a buffer that does not exist");
      if (defined_[static_cast<size_t>(id)]) return fail("assigns " + at(id).name + " a second time");
      defined_[static_cast<size_t>(id)] = true;
      const BufferId old = at(id).updates;
      if (old == kNoBuffer) continue;
      bool read_here = false;
      for (BufferId read : uses.reads) read_here |= read == old;
      if (!read_here) return fail("updates " + at(old).name + " without reading it");
      retired_[static_cast<size_t>(old)] = true;
    }
    return Status::ok();
  }

  Status same_shape(BufferId a, BufferId b) const {
    if (at(a).width != at(b).width || at(a).rows != at(b).rows) {
      return fail(at(a).name + " and " + at(b).name + " differ in shape");
    }
    return Status::ok();
  }
  Status same_rows(BufferId a, BufferId b) const {
    if (at(a).rows != at(b).rows) return fail(at(a).name + " and " + at(b).name + " differ in rows");
    return Status::ok();
  }
  Status inside(const Columns& c) const {
    if (c.column < 0 || c.width <= 0 || c.column + c.width > at(c.buffer).width) {
      return fail("columns outside " + at(c.buffer).name);
    }
    return Status::ok();
  }
  Status fresh(BufferId id) const {
    if (at(id).updates != kNoBuffer) return fail(at(id).name + " can't be computed in place by this op");
    return Status::ok();
  }
  Status token_rows(BufferId id) const {
    if (at(id).rows != Rows::kTokens) return fail(at(id).name + " must have token rows");
    return Status::ok();
  }
  Status known_layer(int64_t layer) const {
    if (layer < 0 || layer >= graph_.kv.layers) return fail("layer " + std::to_string(layer) + " has no KV");
    return Status::ok();
  }

  Status check(const EmbedOp& o) {
    if (o.table.empty()) return fail("has no table");
    DW_RETURN_IF_ERROR(fresh(o.out));
    return token_rows(o.out);
  }

  Status check(const RmsNormOp& o) {
    if (o.weight.empty()) return fail("has no weight");
    DW_RETURN_IF_ERROR(same_shape(o.x, o.out));
    DW_RETURN_IF_ERROR(fresh(o.out));
    if ((o.residual == kNoBuffer) != (o.sum == kNoBuffer)) return fail("residual and sum go together");
    if (o.residual == kNoBuffer) return Status::ok();
    DW_RETURN_IF_ERROR(same_shape(o.x, o.residual));
    if (storage_of(graph_, o.residual) == storage_of(graph_, o.x)) return fail("adds a buffer to itself");
    if (at(o.sum).updates != o.x) return fail("the sum must update " + at(o.x).name);
    return Status::ok();
  }

  Status check(const MatmulOp& o) {
    if (o.parts.empty() || o.parts.size() > 4) return fail("needs 1 to 4 parts");
    DW_RETURN_IF_ERROR(same_rows(o.x, o.out));
    DW_RETURN_IF_ERROR(fresh(o.out));
    int64_t column = 0;
    for (const MatmulPart& part : o.parts) {
      if (part.weight.empty()) return fail("a part has no weight");
      if (part.column != column || part.rows <= 0)
        return fail("parts must cover " + at(o.out).name + " in order");
      column += part.rows;
    }
    if (column != at(o.out).width) return fail("parts must cover " + at(o.out).name);
    return Status::ok();
  }

  Status check(const RopeTableOp& o) {
    DW_RETURN_IF_ERROR(token_rows(o.cosine));
    DW_RETURN_IF_ERROR(same_shape(o.cosine, o.sine));
    DW_RETURN_IF_ERROR(fresh(o.cosine));
    DW_RETURN_IF_ERROR(fresh(o.sine));
    if (at(o.cosine).width != o.half) return fail("table width differs from half the rotary dims");
    return Status::ok();
  }

  Status check(const RopeOp& o) {
    DW_RETURN_IF_ERROR(token_rows(o.x));
    DW_RETURN_IF_ERROR(same_shape(o.cosine, o.sine));
    DW_RETURN_IF_ERROR(same_rows(o.x, o.cosine));
    if (at(o.out).updates != o.x) return fail("must update " + at(o.x).name);
    if (2 * at(o.cosine).width > o.head_dim) return fail("rotates more dims than a head has");
    return inside({o.x, o.column, o.heads * o.head_dim});
  }

  Status check(const KvStoreOp& o) {
    DW_RETURN_IF_ERROR(known_layer(o.layer));
    DW_RETURN_IF_ERROR(inside(o.k));
    DW_RETURN_IF_ERROR(inside(o.v));
    DW_RETURN_IF_ERROR(token_rows(o.k.buffer));
    DW_RETURN_IF_ERROR(token_rows(o.v.buffer));
    const int64_t width = graph_.kv.kv_heads * graph_.kv.head_dim;
    if (o.k.width != width || o.v.width != width) return fail("K and V must be KV heads x head size wide");
    if (!stored_.insert(o.layer).second) return fail("stores layer " + std::to_string(o.layer) + " twice");
    return Status::ok();
  }

  Status check(const AttentionOp& o) {
    DW_RETURN_IF_ERROR(known_layer(o.layer));
    DW_RETURN_IF_ERROR(inside(o.q));
    DW_RETURN_IF_ERROR(token_rows(o.q.buffer));
    DW_RETURN_IF_ERROR(same_rows(o.q.buffer, o.out));
    DW_RETURN_IF_ERROR(fresh(o.out));
    if (!stored_.contains(o.layer)) return fail("reads KV of a layer before it is stored");
    if (o.heads <= 0 || graph_.kv.kv_heads <= 0 || o.heads % graph_.kv.kv_heads != 0) {
      return fail("query heads must be a multiple of KV heads");
    }
    const int64_t width = o.heads * graph_.kv.head_dim;
    if (o.q.width != width || at(o.out).width != width) return fail("must be heads x head size wide");
    return Status::ok();
  }

  Status check(const SwigluOp& o) {
    DW_RETURN_IF_ERROR(inside(o.gate));
    DW_RETURN_IF_ERROR(inside(o.up));
    DW_RETURN_IF_ERROR(same_rows(o.gate.buffer, o.out));
    DW_RETURN_IF_ERROR(fresh(o.out));
    if (o.gate.buffer != o.up.buffer) return fail("gate and up must stand in one buffer");
    if (o.gate.width != at(o.out).width || o.up.width != at(o.out).width) return fail("widths differ");
    return Status::ok();
  }

  Status check(const AddRowsOp& o) {
    DW_RETURN_IF_ERROR(token_rows(o.a));
    DW_RETURN_IF_ERROR(same_shape(o.a, o.b));
    DW_RETURN_IF_ERROR(fresh(o.out));
    if (at(o.out).rows != Rows::kLogits || at(o.out).width != at(o.a).width) {
      return fail(at(o.out).name + " must have logit rows of the same width");
    }
    return Status::ok();
  }

  const Graph& graph_;
  std::vector<bool> defined_;
  std::vector<bool> retired_;
  std::unordered_set<int64_t> stored_;
  size_t index_ = 0;
};

}  // namespace

Status validate(const Graph& graph) { return Checker(graph).run(); }

}  // namespace driftwood::graph
