// Quantised matmuls: shapes of SmolLM2-135M (the up and down projections) and one of a larger model.
#include <memory>

#include "tests/instructions/workload.h"

namespace driftwood::instructions {
namespace {

struct Layout {
  const char* name;
  PackedLayout layout;
  bool has_min;
  int32_t zero_point;
};
constexpr Layout kP4Min = {"p4h_min", PackedLayout::kP4H, true, 0};
constexpr Layout kP4 = {"p4h", PackedLayout::kP4H, false, 8};
constexpr Layout kP8 = {"p8h", PackedLayout::kP8H, false, 0};

struct Shape {
  Layout layout;
  int64_t rows, cols, tokens;
};
constexpr Shape kShapes[] = {
    {kP4Min, 1536, 576, 1}, {kP4Min, 1536, 576, 4},  {kP4Min, 1536, 576, 8},  {kP4Min, 1536, 576, 64},
    {kP4Min, 576, 1536, 1}, {kP4Min, 576, 1536, 64}, {kP4Min, 1024, 2048, 1}, {kP4Min, 256, 2048, 120},
    {kP4, 1536, 576, 1},    {kP4, 1536, 576, 64},    {kP8, 1536, 576, 1},     {kP8, 1536, 576, 4},
    {kP8, 1536, 576, 8},    {kP8, 1536, 576, 64},    {kP8, 1024, 2048, 1},
};

// Of one block (32 inputs, 16 rows, 512 MACs) as matmul_q_avx2.cc goes about it, an operand in memory being
// free where the instruction takes one. Per token: the products and sums, then scale and minimum or zero
// point.
double least_per_mac(const Shape& s) {
  const bool four = s.layout.layout == PackedLayout::kP4H;
  const double products = four ? 8 * (1 + 2 + 2) + 2 : 8 + 16 * 4;
  const double scaling = 2 + 1 + 2 + 2 + (s.layout.has_min ? 3 : 0) + (s.layout.zero_point != 0 ? 3 : 0);
  const double scale_loads = s.layout.has_min ? 4 : 2;
  const double tokens = static_cast<double>(s.tokens);
  if (s.tokens <= 12) {  // straight from the records, by each tile
    const double codes = four ? 8 * 4 : s.tokens == 1 ? 16 : 32;
    const auto tiles = static_cast<double>((s.tokens + 3) / 4);
    return (products + scaling + tiles * (codes + scale_loads) / tokens) / 512;
  }
  // From the panel: its codes are loaded by each tile, the accumulators stored by each block.
  const double unpacking = (four ? 8 * 6 : 16 * 4) + 2 * scale_loads;
  const int64_t tile = four ? 6 : 4;
  const double tiles = static_cast<double>((s.tokens + tile - 1) / tile);
  return (products + scaling + 2 + (16 * tiles + unpacking) / tokens) / 512;
}

struct State {
  explicit State(const Shape& s) : x(s.tokens, s.cols), out(s.tokens * s.rows) {
    args.tokens = s.tokens;
    args.weight = {s.layout.layout, s.layout.has_min, s.layout.zero_point, s.rows, s.cols, nullptr};
    weights = std::make_unique<Bytes>(args.weight.size_bytes());
    args.weight.data = weights->data();
    args.q8 = x.view();
    args.out = out.data();
    args.out_stride = s.rows;
  }
  std::unique_ptr<Bytes> weights;
  Activations x;
  std::vector<float> out;
  MatmulArgs args{};
};

Work prepare(const Shape& s) {
  auto state = std::make_shared<State>(s);
  return {"MAC", s.rows * s.cols * s.tokens, least_per_mac(s),
          [state] { table().matmul(state->args, 0, state->args.weight.groups()); }};
}

}  // namespace

std::vector<Case> quantised_cases() {
  std::vector<Case> cases;
  for (const Shape& s : kShapes) {
    cases.push_back({std::string("matmul_") + s.layout.name + "_" + std::to_string(s.rows) + "x" +
                         std::to_string(s.cols) + "_t" + std::to_string(s.tokens),
                     [s] { return prepare(s); }});
  }
  return cases;
}

}  // namespace driftwood::instructions
