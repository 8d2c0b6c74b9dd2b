// Attention and what it reads: SmolLM2-135M's heads (9 over 3 KV heads of 64), KV in f16.
#include <memory>

#include "tests/instructions/workload.h"

namespace driftwood::instructions {
namespace {

constexpr int64_t kHeads = 9, kKvHeads = 3, kDim = 64;
constexpr int64_t kWidth = kHeads * kDim, kKvWidth = kKvHeads * kDim;
constexpr int64_t kBlockBytes = 65536;
constexpr int64_t kHalfBytes = kKvWidth * kKvBlockTokens * 2;

// `tokens` rows, the last of a sequence of `length`.
struct State {
  State(int64_t tokens, int64_t length)
      : pool(blocks(length) * kBlockBytes),
        block_table(blocks(length)),
        rows(tokens),
        q(tokens * kWidth, 0.25f),
        out(tokens * kWidth) {
    for (size_t i = 0; i < block_table.size(); ++i) block_table[i] = static_cast<int32_t>(i);
    for (int64_t t = 0; t < tokens; ++t)
      rows[t] = {block_table.data(), static_cast<int32_t>(length - tokens + t)};
    layer = {pool.data(), kBlockBytes, 0, kHalfBytes, kKvHeads, kDim, DType::kF16};
    args = {tokens, rows.data(), layer, kHeads, 0.125f, 0, q.data(), kWidth, out.data(), {}};
  }
  static size_t blocks(int64_t length) { return (length + kKvBlockTokens - 1) / kKvBlockTokens; }
  int64_t runs() const { return kernels::attention_runs(rows.back().position, 0); }

  Bytes pool;
  std::vector<int32_t> block_table;
  std::vector<KvRow> rows;
  std::vector<float> q, out;
  KvLayer layer;
  AttentionArgs args;
};

int64_t macs(const State& state) {
  int64_t keys = 0;
  for (const KvRow& row : state.rows) keys += row.position + 1;
  return keys * 2 * kWidth;
}

// Three queries share the load of 32 keys or dims: 3 broadcasts, 4 loads that convert, 12 FMAs for 96 MACs;
// then per 8 scores the largest, the exponential and its sum.
constexpr double kLeast = (3.0 + 4.0 + 12.0) / 96 + (5.0 + kExp) / (8 * 2 * kDim);

Work prepare_attention(int64_t tokens, int64_t length) {
  auto state = std::make_shared<State>(tokens, length);
  const int64_t tiles = (tokens + kernels::kAttentionTile - 1) / kernels::kAttentionTile;
  return {"MAC", macs(*state), kLeast,
          [state, tiles] { table().attention(state->args, 0, tiles * kKvHeads); }};
}

Work prepare_run() {
  auto state = std::make_shared<State>(1, 1024);
  auto partials = std::make_shared<std::vector<float>>(kHeads * state->runs() * (kDim + 2));
  return {"MAC", macs(*state), kLeast, [state, partials] {
            table().attention_run(state->args, partials->data(), state->runs(), 0, kKvHeads * state->runs());
          }};
}

// Eight values of a run: a multiplication, an FMA, a store; two exponentials a run and head.
Work prepare_merge() {
  constexpr int64_t kTokens = 4;
  auto state = std::make_shared<State>(kTokens, 2048);
  const int64_t values = kTokens * kHeads * state->runs() * (kDim + 2);
  auto partials = std::make_shared<std::vector<float>>(values, 0.5f);
  return {"value", kWidth * kTokens * state->runs(), 3.0 / 8 + 2 * kExp / kDim, [state, partials] {
            table().attention_merge(state->args, partials->data(), state->runs(), 0, kTokens * kHeads);
          }};
}

// A key goes down a column, one store a value; a value goes to a row.
Work prepare_store() {
  constexpr int64_t kTokens = 16;
  auto state = std::make_shared<State>(kTokens, kTokens);
  return {"value", 2 * kKvWidth * kTokens, ((1 + 2.0 / 8) + 2.0 / 8) / 2, [state] {
            const KvStoreArgs args{kTokens,  state->rows.data(), state->layer, state->q.data(),
                                   kKvWidth, state->q.data(),    kKvWidth};
            table().kv_store(args, 0, kTokens);
          }};
}

}  // namespace

std::vector<Case> attention_cases() {
  return {
      {"attention_f16_t1_keys1024", [] { return prepare_attention(1, 1024); }},
      {"attention_f16_t8_keys256", [] { return prepare_attention(8, 256); }},
      {"attention_run_f16_t1_keys1024", prepare_run},
      {"attention_merge_t4_runs8", prepare_merge},
      {"kv_store_f16_t16", prepare_store},
  };
}

}  // namespace driftwood::instructions
