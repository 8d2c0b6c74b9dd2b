// The validator refuses each kind of broken graph; the planner never lets two living parts share a byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/plan.h"

namespace driftwood::graph {
namespace {

// Two layers of a llama-like model: width 64, 4 heads over 2 KV heads of 32, feed forward 96.
Graph sample_graph() {
  Builder b({2, 2, 32});
  const auto table = b.rope_table(16, 1.0f);
  BufferId x = b.embed("embed", 64);
  BufferId pending = kNoBuffer;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string p = "l" + std::to_string(layer) + ".";
    auto normed = b.rms_norm(x, pending, p + "norm1", 1e-5f, p + "h");
    BufferId qkv =
        b.matmul(normed.out, {{p + "q", "", 128}, {p + "k", "", 64}, {p + "v", "", 64}}, p + "qkv");
    qkv = b.rope(qkv, 0, 6, 32, RopeStyle::kHalf, table, p + "qkv.rotated");
    b.kv_store(layer, {qkv, 128, 64}, {qkv, 192, 64});
    const BufferId att = b.attention(layer, {qkv, 0, 128}, 4, 0.2f, 0, p + "att");
    const BufferId o = b.matmul(att, {{p + "o", "", 64}}, p + "o");
    normed = b.rms_norm(normed.sum, o, p + "norm2", 1e-5f, p + "h2");
    const BufferId gu = b.matmul(normed.out, {{p + "gate_up", "", 192}}, p + "gu");
    const BufferId act = b.swiglu({gu, 0, 96}, {gu, 96, 96}, p + "act");
    pending = b.matmul(act, {{p + "down", "", 64}}, p + "down");
    x = normed.sum;
  }
  const BufferId last = b.add_rows(x, pending, "last");
  const auto normed = b.rms_norm(last, kNoBuffer, "norm", 1e-5f, "final");
  return b.finish(b.matmul(normed.out, {{"head", "", 320}}, "logits"));
}

template <typename T>
T& op_of(Graph* graph, int nth = 0) {
  for (Op& op : graph->ops) {
    if (auto* found = std::get_if<T>(&op)) {
      if (nth-- == 0) return *found;
    }
  }
  ADD_FAILURE() << "no such op";
  static T none{};
  return none;
}

void expect_refused(const Graph& graph, const std::string& words) {
  const Status status = validate(graph);
  ASSERT_FALSE(status.is_ok()) << words;
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TEST(Graph, SampleIsValidAndPrints) {
  const Graph graph = sample_graph();
  EXPECT_TRUE(validate(graph).is_ok()) << validate(graph).message();
  const std::string text = to_string(graph);
  EXPECT_NE(text.find("matmul l0.h[T,64] -> l0.qkv[T,256] {l0.q} {l0.k} {l0.v}\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("add_rows l1.h2.sum[T,64] l1.down[T,64] -> last[R,64]\n"), std::string::npos) << text;
}

TEST(Graph, RefusesUseBeforeDefinition) {
  Graph graph = sample_graph();
  std::swap(graph.ops[2], graph.ops[3]);
  expect_refused(graph, "before it is defined");
}

TEST(Graph, RefusesSecondAssignment) {
  Graph graph = sample_graph();
  op_of<MatmulOp>(&graph, 3).out = op_of<MatmulOp>(&graph, 2).out;
  EXPECT_FALSE(validate(graph).is_ok());
  graph = sample_graph();
  graph.ops.push_back(graph.ops[1]);
  expect_refused(graph, "a second time");
}

TEST(Graph, RefusesReadingWhatWasUpdatedInPlace) {
  Graph graph = sample_graph();
  op_of<AttentionOp>(&graph).q.buffer = op_of<MatmulOp>(&graph).out;  // before rope
  expect_refused(graph, "after it was updated in place");
}

TEST(Graph, RefusesAttentionBeforeItsKv) {
  Graph graph = sample_graph();
  op_of<AttentionOp>(&graph).layer = 1;
  expect_refused(graph, "before it is stored");
  graph = sample_graph();
  op_of<KvStoreOp>(&graph, 1).layer = 0;
  expect_refused(graph, "twice");
  graph = sample_graph();
  op_of<KvStoreOp>(&graph).layer = 2;
  expect_refused(graph, "has no KV");
}

TEST(Graph, RefusesWrongShapes) {
  Graph graph = sample_graph();
  op_of<MatmulOp>(&graph).parts[1].rows = 32;
  expect_refused(graph, "cover");
  graph = sample_graph();
  op_of<KvStoreOp>(&graph).v.column = 200;
  expect_refused(graph, "columns outside");
  graph = sample_graph();
  op_of<SwigluOp>(&graph).up.width = 64;
  expect_refused(graph, "widths differ");
  graph = sample_graph();
  op_of<AttentionOp>(&graph).heads = 3;
  expect_refused(graph, "multiple of KV heads");
  graph = sample_graph();
  op_of<RopeOp>(&graph).head_dim = 16;
  expect_refused(graph, "more dims than a head has");
  graph = sample_graph();
  graph.logits = 0;
  expect_refused(graph, "logit rows");
}

struct Extent {
  BufferId storage;
  int64_t begin, end;
  size_t first, last;
};

// Recomputes lives independently: from first write to last read of any version of the storage.
std::vector<Extent> extents(const Graph& graph, const Plan& plan, int64_t tokens, int64_t logit_rows) {
  std::vector<Extent> result;
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const Buffer& buffer = graph.buffers[i];
    const auto id = static_cast<BufferId>(i);
    if (storage_of(graph, id) != id) continue;
    size_t first = graph.ops.size();
    size_t last = 0;
    for (size_t n = 0; n < graph.ops.size(); ++n) {
      const OpUses uses = op_uses(graph.ops[n]);
      for (const auto* list : {&uses.reads, &uses.writes}) {
        for (BufferId used : *list) {
          if (storage_of(graph, used) != id) continue;
          first = std::min(first, n);
          last = std::max(last, n);
        }
      }
    }
    if (id == graph.logits) last = graph.ops.size();
    const int64_t rows = buffer.rows == Rows::kTokens ? tokens : logit_rows;
    const Placement& p = plan.placements[i];
    // f32 beside q8 is only attention's own scratch here: it lives for that op alone.
    const size_t f32_last = p.has_q8() ? first : last;
    if (p.has_f32()) result.push_back({id, p.f32, p.f32 + rows * buffer.width * 4, first, f32_last});
    if (!p.has_q8()) continue;
    const int64_t scales = rows * buffer.width / 32 * 4;
    result.push_back({id, p.q, p.q + rows * buffer.width, first, last});
    for (int64_t part : {p.d, p.s, p.isum}) result.push_back({id, part, part + scales, first, last});
  }
  return result;
}

void check_plan(bool quantised) {
  const Graph graph = sample_graph();
  for (int64_t tokens : {1, 7, 64}) {
    const auto plan = make_plan(
        graph, {tokens, std::min<int64_t>(tokens, 4), [&](const std::string&) { return quantised; }});
    ASSERT_TRUE(plan.is_ok()) << plan.status().message();
    const auto all = extents(graph, *plan, tokens, std::min<int64_t>(tokens, 4));
    for (const Extent& a : all) {
      EXPECT_EQ(a.begin % kArenaAlign, 0);
      EXPECT_LE(a.end, plan->arena_bytes);
      for (const Extent& b : all) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        EXPECT_TRUE(a.end <= b.begin || b.end <= a.begin)
            << graph.buffers[static_cast<size_t>(a.storage)].name << " overlaps "
            << graph.buffers[static_cast<size_t>(b.storage)].name;
      }
    }
    EXPECT_LT(plan->arena_bytes, plan->unshared_bytes);
  }
}

TEST(Plan, LivingPartsNeverOverlap) {
  check_plan(false);
  check_plan(true);
}

TEST(Plan, FormsFollowTheReaders) {
  const Graph graph = sample_graph();
  const auto find = [&](const std::string& name) {
    for (size_t i = 0; i < graph.buffers.size(); ++i) {
      if (graph.buffers[i].name == name) return i;
    }
    ADD_FAILURE() << name;
    return size_t{0};
  };
  // Mixed: k is dense, everything else is quantised.
  const auto plan = make_plan(graph, {8, 8, [](const std::string& key) { return key != "l0.k"; }});
  ASSERT_TRUE(plan.is_ok());
  EXPECT_TRUE(plan->placements[find("l0.h")].has_f32() && plan->placements[find("l0.h")].has_q8());
  EXPECT_TRUE(!plan->placements[find("l1.h")].has_f32() && plan->placements[find("l1.h")].has_q8());
  EXPECT_TRUE(!plan->placements[find("l0.act")].has_f32() && plan->placements[find("l0.act")].has_q8());
  EXPECT_TRUE(plan->placements[find("l0.att")].has_f32() && plan->placements[find("l0.att")].has_q8());
  EXPECT_TRUE(plan->placements[find("logits")].has_f32() && !plan->placements[find("logits")].has_q8());
  EXPECT_EQ(plan->placements[find("embedding")].f32, plan->placements[find("l1.h2.sum")].f32);
}

TEST(Plan, RefusesQ8FromAnOpThatCannotQuantise) {
  Builder b({1, 1, 32});
  const BufferId x = b.embed("embed", 64);
  const BufferId y = b.matmul(x, {{"w", "", 64}}, "y");
  const Graph graph = b.finish(b.add_rows(y, y, "logits"));
  const auto plan = make_plan(graph, {1, 1, [](const std::string&) { return true; }});
  ASSERT_FALSE(plan.is_ok());
  EXPECT_NE(plan.status().message().find("embed can't quantise"), std::string::npos)
      << plan.status().message();
}

}  // namespace
}  // namespace driftwood::graph
