#include "graph/plan.h"

#include <algorithm>

namespace driftwood::graph {
namespace {

constexpr int64_t kNever = -1;

// Life of one part of one storage: ops [first, last], both included. Inputs and outputs of an op never
// overlap.
struct Life {
  int64_t first = kNever;
  int64_t last = kNever;

  bool lives() const { return first != kNever; }
  void cover(int64_t op) {
    if (first == kNever) first = op;
    last = std::max(last, op);
  }
};

struct Part {
  BufferId storage = kNoBuffer;
  bool q8 = false;
  Life life;
  int64_t bytes = 0;
  int64_t offset = 0;
};

int64_t align_up(int64_t bytes) { return (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign; }

bool can_quantise(const Op& op) {
  return std::holds_alternative<RmsNormOp>(op) || std::holds_alternative<AttentionOp>(op) ||
         std::holds_alternative<SwigluOp>(op);
}

// Does the op always write its f32 output, read or not?
bool needs_f32_output(const Op& op) {
  return !std::holds_alternative<RmsNormOp>(op) && !std::holds_alternative<SwigluOp>(op);
}

struct Lives {
  std::vector<Life> f32;  // by storage
  std::vector<Life> q8;
};

void mark_matmul_read(const Graph& graph, const MatmulOp& op, const PlanOptions& options, int64_t index,
                      Lives* lives) {
  const auto storage = static_cast<size_t>(storage_of(graph, op.x));
  for (const MatmulPart& part : op.parts) {
    (options.reads_q8(part.weight) ? lives->q8 : lives->f32)[storage].last = index;
  }
}

// Last uses first, then definitions: a part lives only if something reads it or its op must write it.
Lives find_lives(const Graph& graph, const PlanOptions& options) {
  Lives lives{std::vector<Life>(graph.buffers.size()), std::vector<Life>(graph.buffers.size())};
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    if (const auto* matmul = std::get_if<MatmulOp>(&graph.ops[i])) {
      mark_matmul_read(graph, *matmul, options, index, &lives);
      continue;
    }
    for (BufferId id : op_uses(graph.ops[i]).reads) {
      lives.f32[static_cast<size_t>(storage_of(graph, id))].last = index;
    }
  }
  lives.f32[static_cast<size_t>(storage_of(graph, graph.logits))].last =
      static_cast<int64_t>(graph.ops.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    for (BufferId id : op_uses(graph.ops[i]).writes) {
      const auto storage = static_cast<size_t>(storage_of(graph, id));
      const auto index = static_cast<int64_t>(i);
      const bool update = graph.buffers[static_cast<size_t>(id)].updates != kNoBuffer;
      if (update || needs_f32_output(graph.ops[i]) || lives.f32[storage].last != kNever) {
        lives.f32[storage].cover(index);
      }
      if (!update && lives.q8[storage].last != kNever) lives.q8[storage].cover(index);
    }
  }
  return lives;
}

Status check_q8(const Graph& graph, const Lives& lives) {
  for (const Op& op : graph.ops) {
    for (BufferId id : op_uses(op).writes) {
      const Buffer& buffer = graph.buffers[static_cast<size_t>(id)];
      const auto storage = static_cast<size_t>(storage_of(graph, id));
      if (!lives.q8[storage].lives()) continue;
      if (!can_quantise(op) || static_cast<size_t>(id) != storage) {
        return internal_error("graph: " + buffer.name + " is read by quantised weights, but " + op_name(op) +
                              " can't quantise");
      }
      if (buffer.width % kQuantBlock != 0) {
        return internal_error("graph: " + buffer.name + " has a width of " + std::to_string(buffer.width) +
                              ", quantised rows need a multiple of 32");
      }
    }
  }
  return Status::ok();
}

int64_t rows_of(const Buffer& buffer, const PlanOptions& options) {
  return buffer.rows == Rows::kTokens ? options.max_tokens : options.max_logit_rows;
}

int64_t q8_bytes(int64_t rows, int64_t width) {
  return align_up(rows * width) + 3 * align_up(rows * (width / kQuantBlock) * 4);
}

// Largest parts first, each at the lowest offset free during its whole life.
int64_t place(std::vector<Part>* parts) {
  std::stable_sort(parts->begin(), parts->end(),
                   [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
  int64_t total = 0;
  std::vector<const Part*> in_the_way;
  for (size_t i = 0; i < parts->size(); ++i) {
    Part& part = (*parts)[i];
    in_the_way.clear();
    for (size_t j = 0; j < i; ++j) {
      const Part& other = (*parts)[j];
      if (other.life.first <= part.life.last && part.life.first <= other.life.last)
        in_the_way.push_back(&other);
    }
    std::sort(in_the_way.begin(), in_the_way.end(),
              [](const Part* a, const Part* b) { return a->offset < b->offset; });
    int64_t offset = 0;
    for (const Part* other : in_the_way) {
      if (other->offset >= offset + part.bytes) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    part.offset = offset;
    total = std::max(total, offset + part.bytes);
  }
  return total;
}

}  // namespace

Result<Plan> make_plan(const Graph& graph, const PlanOptions& options) {
  DW_CHECK(options.max_tokens > 0 && options.max_logit_rows > 0, "a plan needs row counts");
  const Lives lives = find_lives(graph, options);
  DW_RETURN_IF_ERROR(check_q8(graph, lives));

  std::vector<Part> parts;
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const Buffer& buffer = graph.buffers[i];
    const int64_t rows = rows_of(buffer, options);
    const auto id = static_cast<BufferId>(i);
    if (lives.f32[i].lives())
      parts.push_back({id, false, lives.f32[i], align_up(rows * buffer.width * 4), 0});
    if (lives.q8[i].lives()) parts.push_back({id, true, lives.q8[i], q8_bytes(rows, buffer.width), 0});
  }

  Plan plan;
  plan.arena_bytes = place(&parts);
  plan.placements.resize(graph.buffers.size());
  for (const Part& part : parts) {
    const Buffer& buffer = graph.buffers[static_cast<size_t>(part.storage)];
    Placement& placement = plan.placements[static_cast<size_t>(part.storage)];
    plan.unshared_bytes += part.bytes;
    if (!part.q8) {
      placement.f32 = part.offset;
      continue;
    }
    const int64_t rows = rows_of(buffer, options);
    const int64_t scales = align_up(rows * (buffer.width / kQuantBlock) * 4);
    placement.q = part.offset;
    placement.d = placement.q + align_up(rows * buffer.width);
    placement.s = placement.d + scales;
    placement.isum = placement.s + scales;
  }
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    plan.placements[i] = plan.placements[static_cast<size_t>(storage_of(graph, static_cast<BufferId>(i)))];
  }
  return plan;
}

}  // namespace driftwood::graph
