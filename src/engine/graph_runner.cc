#include "engine/graph_runner.h"

#include "engine/graph_binder.h"

namespace driftwood::engine {

GraphRunner::GraphRunner(weights::WeightSource* weights, device::Device* device, const RunnerOptions& options)
    : weights_(weights),
      device_(device),
      ops_(device->ops()),
      options_(options),
      stream_(device->make_stream()) {
  const auto rows = static_cast<size_t>(options.max_tokens);
  ids_.resize(rows);
  positions_.resize(rows);
  kv_rows_.resize(rows);
  logit_rows_.resize(static_cast<size_t>(options.max_logit_rows));
  frequencies_.reserve(rows);
}

GraphRunner::~GraphRunner() {
  reader_.reset();
  for (const std::string& key : acquired_) weights_->release(key);
}

Result<std::unique_ptr<GraphRunner>> GraphRunner::create(const graph::Graph& graph,
                                                         weights::WeightSource* weights,
                                                         device::Device* device, const kv::KvLayout& layout,
                                                         uint8_t* pool, const RunnerOptions& options) {
  DW_RETURN_IF_ERROR(graph::validate(graph));
  if (!device->info().pointers_are_host) {
    return unimplemented("device \"" + device->info().name + "\" does not share memory with the host");
  }
  std::unique_ptr<GraphRunner> runner(new GraphRunner(weights, device, options));
  Binder binder(graph, layout, pool, runner.get());
  DW_RETURN_IF_ERROR(binder.bind());
  return runner;
}

Status GraphRunner::run(int64_t tokens, int64_t logit_rows, float* logits) {
  DW_CHECK(tokens > 0 && tokens <= options_.max_tokens, "rows within the plan");
  DW_CHECK(logit_rows >= 0 && logit_rows <= options_.max_logit_rows, "logit rows within the plan");
  float* const out = logits != nullptr ? logits : arena_logits_;
  for (const HeadStep& head : head_) {
    auto& matmul = std::get<MatmulBatchArgs>(steps_[head.step].arguments);
    for (int i = 0; i < matmul.count; ++i) matmul.parts[i].out = out + head.columns[static_cast<size_t>(i)];
  }
  for (Step& step : steps_) {
    if (step.rows == graph::Rows::kLogits && logit_rows == 0) continue;
    DW_RETURN_IF_ERROR(run_step(&step, tokens, logit_rows));
  }
  return stream_->wait();
}

Status GraphRunner::run_step(Step* step, int64_t tokens, int64_t logit_rows) {
  const int64_t rows = step->rows == graph::Rows::kTokens ? tokens : logit_rows;
  device::Stream& stream = *stream_;
  return std::visit(
      [&](auto& a) -> Status {
        using Args = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<Args, AddRows>) {
          return run_add_rows(a, logit_rows);
        } else if constexpr (std::is_same_v<Args, RopeTableArgs>) {
          return run_rope_table(a);
        } else if constexpr (std::is_same_v<Args, MatmulBatchArgs>) {
          for (int i = 0; i < a.count; ++i) a.parts[i].tokens = rows;
          if (reader_ != nullptr) reach_weights(*step, &a);
          return ops_.matmul(stream, a);
        } else {
          a.tokens = rows;
          if constexpr (std::is_same_v<Args, EmbedArgs>) return ops_.embed(stream, a);
          if constexpr (std::is_same_v<Args, RmsNormArgs>) return ops_.rms_norm(stream, a);
          if constexpr (std::is_same_v<Args, RopeArgs>) return ops_.rope(stream, a);
          if constexpr (std::is_same_v<Args, KvStoreArgs>) return ops_.kv_store(stream, a);
          if constexpr (std::is_same_v<Args, AttentionArgs>) return ops_.attention(stream, a);
          if constexpr (std::is_same_v<Args, SwigluArgs>) return ops_.swiglu(stream, a);
        }
      },
      step->arguments);
}

// Weights that do not stay in memory are elsewhere each time.
void GraphRunner::reach_weights(const Step& step, MatmulBatchArgs* matmul) {
  const std::span<const uint8_t* const> places = reader_->reach(step.stage);
  for (size_t i = 0; i < places.size(); ++i) matmul->parts[i].weight.data = places[i];
}

Status GraphRunner::run_rope_table(RopeTableArgs a) {
  float* const cosine = a.cosine;
  float* const sine = a.sine;
  for (const FrequencyRun& run : frequencies_) {
    a.tokens = run.count;
    a.positions = positions_.data() + run.begin;
    a.inv_freq = run.inv_freq;
    a.cosine = cosine + run.begin * a.half;
    a.sine = sine + run.begin * a.half;
    DW_RETURN_IF_ERROR(ops_.rope_table(*stream_, a));
  }
  return Status::ok();
}

// Neighbouring rows are added in one call.
Status GraphRunner::run_add_rows(const AddRows& a, int64_t logit_rows) {
  for (int64_t r = 0; r < logit_rows;) {
    const int64_t first = logit_rows_[static_cast<size_t>(r)];
    int64_t count = 1;
    while (r + count < logit_rows && logit_rows_[static_cast<size_t>(r + count)] == first + count) ++count;
    const AddArgs add{count * a.width, a.a + first * a.width, a.b + first * a.width, a.out + r * a.width};
    DW_RETURN_IF_ERROR(ops_.add(*stream_, add));
    r += count;
  }
  return Status::ok();
}

}  // namespace driftwood::engine
