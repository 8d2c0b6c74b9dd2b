#include "engine/graph_binder.h"

namespace driftwood::engine {
namespace {

// A matmul of more weights than this is cut by rows, so that a stage of weights that do not stay in memory is
// never large. Costs nothing to speak of, and no bit: a row is a sum of its own.
constexpr int64_t kMostMatmulBytes = 32 * 1024 * 1024;

// Rows [begin, end) of a matmul; begin is a multiple of kRowGroup.
MatmulArgs cut_rows(const MatmulArgs& whole, int64_t begin, int64_t end) {
  MatmulArgs piece = whole;
  piece.weight.rows = end - begin;
  piece.weight.data += static_cast<size_t>(begin / kRowGroup) * whole.weight.group_bytes();
  if (piece.bias != nullptr) piece.bias += begin;
  piece.out += begin;
  return piece;
}

std::vector<MatmulBatchArgs> pieces_of(const MatmulBatchArgs& whole) {
  int64_t bytes = 0;
  for (int i = 0; i < whole.count; ++i) bytes += static_cast<int64_t>(whole.parts[i].weight.size_bytes());
  if (bytes <= kMostMatmulBytes) return {whole};
  std::vector<MatmulBatchArgs> pieces;
  for (int i = 0; i < whole.count; ++i) {
    const MatmulArgs& part = whole.parts[i];
    const auto size = static_cast<int64_t>(part.weight.size_bytes());
    const int64_t count = (size + kMostMatmulBytes - 1) / kMostMatmulBytes;
    for (int64_t p = 0; p < count; ++p) {
      const int64_t begin = part.weight.groups() * p / count * kRowGroup;
      const int64_t end = std::min(part.weight.rows, part.weight.groups() * (p + 1) / count * kRowGroup);
      if (end > begin) pieces.push_back({1, {cut_rows(part, begin, end)}});
    }
  }
  return pieces;
}

// The rows an op runs over: those of what it writes, or reads if it writes no buffer.
graph::Rows rows_of(const graph::Graph& graph, const graph::Op& op) {
  const graph::OpUses uses = graph::op_uses(op);
  const graph::BufferId id = uses.writes.empty() ? uses.reads.front() : uses.writes.front();
  return graph.buffers[static_cast<size_t>(id)].rows;
}

// Does the device have what the op needs?
bool supports(const device::OpTable& ops, const graph::Op& op) {
  struct Visitor {
    const device::OpTable& ops;
    bool operator()(const graph::EmbedOp&) const { return ops.embed != nullptr; }
    bool operator()(const graph::RmsNormOp&) const { return ops.rms_norm != nullptr; }
    bool operator()(const graph::MatmulOp&) const { return ops.matmul != nullptr; }
    bool operator()(const graph::RopeTableOp&) const { return ops.rope_table != nullptr; }
    bool operator()(const graph::RopeOp&) const { return ops.rope != nullptr; }
    bool operator()(const graph::KvStoreOp&) const { return ops.kv_store != nullptr; }
    bool operator()(const graph::AttentionOp&) const { return ops.attention != nullptr; }
    bool operator()(const graph::SwigluOp&) const { return ops.swiglu != nullptr; }
    bool operator()(const graph::AddRowsOp&) const { return ops.add != nullptr; }
  };
  return std::visit(Visitor{ops}, op);
}

}  // namespace

Status GraphRunner::Binder::bind() {
  for (const graph::Op& op : graph_.ops) {
    if (supports(runner_.ops_, op)) continue;
    return unimplemented("device \"" + runner_.device_->info().name + "\" has no op " + graph::op_name(op));
  }
  DW_RETURN_IF_ERROR(acquire_all());
  DW_RETURN_IF_ERROR(make_arena());
  runner_.arena_logits_ = f32(graph_.logits);
  runner_.vocab_size_ = at(graph_.logits).width;
  for (const graph::Op& op : graph_.ops) {
    auto bound = std::visit([this](const auto& o) { return arguments(o); }, op);
    if (!bound.is_ok()) return bound.status();
    if (const auto* matmul = std::get_if<MatmulBatchArgs>(&*bound)) {
      add_matmul(*matmul, rows_of(graph_, op), std::get<graph::MatmulOp>(op).out == graph_.logits);
    } else {
      runner_.steps_.push_back({rows_of(graph_, op), std::move(*bound)});
    }
  }
  if (runner_.head_.empty()) return internal_error("graph: the logits must come from a matmul");
  link_matmuls();
  open_reader();
  return Status::ok();
}

void GraphRunner::Binder::add_matmul(const MatmulBatchArgs& whole, graph::Rows rows, bool head) {
  for (const MatmulBatchArgs& piece : pieces_of(whole)) {
    runner_.steps_.push_back({rows, piece});
    if (!head) continue;
    HeadStep& step = runner_.head_.emplace_back(HeadStep{runner_.steps_.size() - 1, {}});
    for (int i = 0; i < piece.count; ++i)
      step.columns[static_cast<size_t>(i)] = piece.parts[i].out - f32(graph_.logits);
  }
}

// Each matmul knows the next, the last of a step the first one.
void GraphRunner::Binder::link_matmuls() {
  const MatmulBatchArgs* next = nullptr;
  for (int round = 0; round < 2; ++round) {
    for (auto step = runner_.steps_.rbegin(); step != runner_.steps_.rend(); ++step) {
      auto* matmul = std::get_if<MatmulBatchArgs>(&step->arguments);
      if (matmul == nullptr) continue;
      matmul->next = next;
      next = matmul;
    }
  }
}

// Each matmul is a stage.
void GraphRunner::Binder::open_reader() {
  std::vector<std::vector<PackedMatrix>> stages;
  for (GraphRunner::Step& step : runner_.steps_) {
    const auto* matmul = std::get_if<MatmulBatchArgs>(&step.arguments);
    if (matmul == nullptr) continue;
    step.stage = stages.size();
    std::vector<PackedMatrix>& matrices = stages.emplace_back();
    for (int i = 0; i < matmul->count; ++i) matrices.push_back(matmul->parts[i].weight);
  }
  runner_.reader_ = runner_.weights_->open_reader(stages);
}

Status GraphRunner::Binder::acquire(const std::string& key) {
  if (matrices_.contains(key)) return Status::ok();
  DW_ASSIGN_OR_RETURN(const PackedMatrix matrix, runner_.weights_->acquire(key));
  runner_.acquired_.push_back(key);
  matrices_.emplace(key, matrix);
  return Status::ok();
}

Status GraphRunner::Binder::acquire_all() {
  for (const graph::Op& op : graph_.ops) {
    if (const auto* embed = std::get_if<graph::EmbedOp>(&op)) DW_RETURN_IF_ERROR(acquire(embed->table));
    const auto* matmul = std::get_if<graph::MatmulOp>(&op);
    if (matmul == nullptr) continue;
    for (const graph::MatmulPart& part : matmul->parts) DW_RETURN_IF_ERROR(acquire(part.weight));
  }
  return Status::ok();
}

Status GraphRunner::Binder::make_arena() {
  graph::PlanOptions options;
  options.max_tokens = runner_.options_.max_tokens;
  options.max_logit_rows = runner_.options_.max_logit_rows;
  options.reads_q8 = [this](const std::string& key) {
    return !runner_.options_.f32_activations && is_quantised(matrices_.at(key).layout);
  };
  DW_ASSIGN_OR_RETURN(runner_.plan_, graph::make_plan(graph_, options));
  DW_ASSIGN_OR_RETURN(runner_.arena_,
                      runner_.device_->allocate(static_cast<size_t>(runner_.plan_.arena_bytes)));
  return Status::ok();
}

float* GraphRunner::Binder::f32(graph::BufferId id) const {
  if (id == graph::kNoBuffer || !place(id).has_f32()) return nullptr;
  return reinterpret_cast<float*>(runner_.arena_->data() + place(id).f32);
}

ActivationsQ8 GraphRunner::Binder::q8(graph::BufferId id) const {
  const graph::Placement& p = place(id);
  if (!p.has_q8()) return {};
  uint8_t* const base = runner_.arena_->data();
  return {reinterpret_cast<int8_t*>(base + p.q), reinterpret_cast<float*>(base + p.d),
          reinterpret_cast<float*>(base + p.s), reinterpret_cast<int32_t*>(base + p.isum)};
}

Result<PackedMatrix> GraphRunner::Binder::matrix(const std::string& key, int64_t rows, int64_t cols) const {
  const PackedMatrix& m = matrices_.at(key);
  if (m.rows == rows && m.cols == cols) return m;
  return internal_error("matrix " + key + " is " + std::to_string(m.rows) + " x " + std::to_string(m.cols) +
                        ", the graph needs " + std::to_string(rows) + " x " + std::to_string(cols));
}

Result<const float*> GraphRunner::Binder::vector(const std::string& key, int64_t width) const {
  DW_ASSIGN_OR_RETURN(const std::span<const float> values, runner_.weights_->vector(key));
  if (static_cast<int64_t>(values.size()) == width) return values.data();
  return internal_error("vector " + key + " has " + std::to_string(values.size()) +
                        " values, the graph needs " + std::to_string(width));
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::EmbedOp& op) {
  EmbedArgs a{};
  a.ids = runner_.ids_.data();
  DW_ASSIGN_OR_RETURN(a.table, matrix(op.table, matrices_.at(op.table).rows, at(op.out).width));
  a.out = f32(op.out);
  return Arguments(a);
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::RmsNormOp& op) {
  RmsNormArgs a{};
  a.width = at(op.x).width;
  a.x = f32(op.x);
  a.residual = f32(op.residual);
  DW_ASSIGN_OR_RETURN(a.weight, vector(op.weight, a.width));
  a.epsilon = op.epsilon;
  a.out = f32(op.out);
  a.q8 = q8(op.out);
  return Arguments(a);
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::MatmulOp& op) {
  MatmulBatchArgs batch{};
  batch.count = static_cast<int>(op.parts.size());
  for (size_t i = 0; i < op.parts.size(); ++i) {
    const graph::MatmulPart& part = op.parts[i];
    MatmulArgs& a = batch.parts[i];
    DW_ASSIGN_OR_RETURN(a.weight, matrix(part.weight, part.rows, at(op.x).width));
    if (!part.bias.empty()) {
      DW_ASSIGN_OR_RETURN(a.bias, vector(part.bias, part.rows));
    }
    a.x = f32(op.x);
    a.q8 = q8(op.x);
    a.out = f32(op.out) + part.column;
    a.out_stride = at(op.out).width;
  }
  return Arguments(batch);
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::RopeTableOp& op) {
  RopeTableArgs a{};
  a.half = op.half;
  a.scale = op.scale;
  a.cosine = f32(op.cosine);
  a.sine = f32(op.sine);
  return Arguments(a);
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::RopeOp& op) {
  RopeArgs a{};
  a.heads = op.heads;
  a.head_dim = op.head_dim;
  a.half = at(op.cosine).width;
  a.style = op.style;
  a.x = f32(op.x) + op.column;
  a.stride = at(op.x).width;
  a.cosine = f32(op.cosine);
  a.sine = f32(op.sine);
  return Arguments(a);
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::KvStoreOp& op) {
  KvStoreArgs a{};
  a.rows = runner_.kv_rows_.data();
  a.layer = layout_.layer(pool_, op.layer);
  a.k = f32(op.k.buffer) + op.k.column;
  a.k_stride = at(op.k.buffer).width;
  a.v = f32(op.v.buffer) + op.v.column;
  a.v_stride = at(op.v.buffer).width;
  return Arguments(a);
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::AttentionOp& op) {
  AttentionArgs a{};
  a.rows = runner_.kv_rows_.data();
  a.layer = layout_.layer(pool_, op.layer);
  a.heads = op.heads;
  a.scale = op.scale;
  a.window = op.window;
  a.q = f32(op.q.buffer) + op.q.column;
  a.q_stride = at(op.q.buffer).width;
  a.out = f32(op.out);
  a.q8 = q8(op.out);
  return Arguments(a);
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::SwigluOp& op) {
  SwigluArgs a{};
  a.width = op.gate.width;
  a.gate = f32(op.gate.buffer) + op.gate.column;
  a.up = f32(op.up.buffer) + op.up.column;
  a.stride = at(op.gate.buffer).width;
  a.out = f32(op.out);
  a.q8 = q8(op.out);
  return Arguments(a);
}

Result<GraphRunner::Arguments> GraphRunner::Binder::arguments(const graph::AddRowsOp& op) {
  return Arguments(AddRows{at(op.a).width, f32(op.a), f32(op.b), f32(op.out)});
}

}  // namespace driftwood::engine
