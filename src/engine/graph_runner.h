// GraphRunner: one graph bound to weights, a KV pool and an arena on a device, ready to run for any number of
// rows up to its limits.
//
// Binding turns every op into the argument struct of its device op, pointers and all; a run only fills in the
// row count. So a run neither allocates nor looks anything up. Weights stay acquired while the runner lives.
//
// Use: fill ids(), positions(), kv_rows(), frequencies() for T rows and logit_rows() for the R rows whose
// logits are wanted, then run(T, R, ...). Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "kv/kv_layout.h"
#include "weights/weight_source.h"

namespace driftwood::engine {

// Rows [begin, begin + count) rotate by these frequencies.
struct FrequencyRun {
  int64_t begin = 0;
  int64_t count = 0;
  const float* inv_freq = nullptr;
};

struct RunnerOptions {
  int64_t max_tokens = 512;
  int64_t max_logit_rows = 64;
  bool f32_activations = false;  // debug: quantised weights times f32 activations
};

class GraphRunner {
 public:
  // Everything passed in outlives the runner. Errors: unimplemented (the device lacks an op), internal_error
  // (a weight's shape is not the graph's), and what the weight source and the device report.
  static Result<std::unique_ptr<GraphRunner>> create(const graph::Graph& graph,
                                                     weights::WeightSource* weights, device::Device* device,
                                                     const kv::KvLayout& layout, uint8_t* pool,
                                                     const RunnerOptions& options);
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  const RunnerOptions& options() const { return options_; }
  int64_t vocab_size() const { return vocab_size_; }
  int64_t arena_bytes() const { return plan_.arena_bytes; }

  int32_t* ids() { return ids_.data(); }
  int32_t* positions() { return positions_.data(); }
  KvRow* kv_rows() { return kv_rows_.data(); }
  int32_t* logit_rows() { return logit_rows_.data(); }               // ascending indices of rows
  std::vector<FrequencyRun>& frequencies() { return frequencies_; }  // covering [0, T)

  // Logits [R, V] go to `logits` if it is not null, else to the arena, where arena_logits() finds them until
  // the next run.
  Status run(int64_t tokens, int64_t logit_rows, float* logits = nullptr);
  const float* arena_logits() const { return arena_logits_; }

 private:
  // The residual sum of the wanted rows.
  struct AddRows {
    int64_t width;
    const float* a;
    const float* b;
    float* out;
  };
  using Arguments = std::variant<EmbedArgs, RmsNormArgs, MatmulBatchArgs, RopeTableArgs, RopeArgs,
                                 KvStoreArgs, AttentionArgs, SwigluArgs, AddRows>;
  struct Step {
    graph::Rows rows;
    Arguments arguments;
    size_t stage = 0;  // of a matmul: which one it is, for reader_
  };
  struct HeadStep {
    size_t step;
    std::array<int64_t, 4> columns;  // of its parts
  };
  class Binder;

  GraphRunner(weights::WeightSource* weights, device::Device* device, const RunnerOptions& options);

  Status run_step(Step* step, int64_t tokens, int64_t logit_rows);
  void reach_weights(const Step& step, MatmulBatchArgs* matmul);
  Status run_rope_table(RopeTableArgs arguments);
  Status run_add_rows(const AddRows& arguments, int64_t logit_rows);

  weights::WeightSource* weights_;
  device::Device* device_;
  const device::OpTable& ops_;
  RunnerOptions options_;
  graph::Plan plan_;
  std::unique_ptr<device::Buffer> arena_;
  std::unique_ptr<device::Stream> stream_;
  std::vector<std::string> acquired_;
  std::unique_ptr<weights::WeightReader> reader_;  // null: weights stay where they are
  std::vector<Step> steps_;
  std::vector<HeadStep> head_;  // the matmuls that write the logits
  float* arena_logits_ = nullptr;
  int64_t vocab_size_ = 0;

  std::vector<int32_t> ids_;
  std::vector<int32_t> positions_;
  std::vector<KvRow> kv_rows_;
  std::vector<int32_t> logit_rows_;
  std::vector<FrequencyRun> frequencies_;
};

}  // namespace driftwood::engine
