// Dense matmuls and the guests' gemm. FMA is emulated lane by lane under valgrind, so these are smaller than
// the model's: the rows of a matrix are all treated alike.
#include <memory>

#include "tests/instructions/workload.h"

namespace driftwood::instructions {
namespace {

struct Shape {
  const char* name;
  PackedLayout layout;
  int64_t tokens;
};
constexpr int64_t kRows = 64, kCols = 576;
constexpr int64_t kTile = 6;
constexpr Shape kShapes[] = {
    {"f32", PackedLayout::kF32, 1},  {"f32", PackedLayout::kF32, 24},  {"f16", PackedLayout::kF16, 1},
    {"f16", PackedLayout::kF16, 24}, {"bf16", PackedLayout::kBF16, 1}, {"bf16", PackedLayout::kBF16, 24},
};

// Of one input and 16 outputs, for a tile of tokens: a broadcast and two FMAs a token, and the weights.
double least_per_mac(PackedLayout layout, int64_t tile) {
  const double two_loads = tile == 1 ? 0 : 2;  // an FMA reads f32 from memory
  const double weights = layout == PackedLayout::kF32 ? two_loads : layout == PackedLayout::kF16 ? 2 : 4;
  return (3 + weights / static_cast<double>(tile)) / 16;
}

struct State {
  explicit State(const Shape& s) : x(s.tokens * kCols, 0.5f), out(s.tokens * kRows) {
    args.tokens = s.tokens;
    args.weight = {s.layout, false, 0, kRows, kCols, nullptr};
    weights = std::make_unique<Bytes>(args.weight.size_bytes());
    args.weight.data = weights->data();
    args.x = x.data();
    args.out = out.data();
    args.out_stride = kRows;
  }
  std::unique_ptr<Bytes> weights;
  std::vector<float> x, out;
  MatmulArgs args{};
};

Work prepare(const Shape& s) {
  auto state = std::make_shared<State>(s);
  return {"MAC", kRows * kCols * s.tokens, least_per_mac(s.layout, s.tokens < kTile ? s.tokens : kTile),
          [state] { table().matmul(state->args, 0, state->args.weight.groups()); }};
}

Work prepare_gemm() {
  constexpr int64_t kSize = 128;
  struct Matrices {
    std::vector<float> a, b, c;
  };
  const std::vector<float> half(kSize * kSize, 0.5f);
  auto m = std::make_shared<Matrices>(Matrices{half, half, half});
  return {"MAC", kSize * kSize * kSize, least_per_mac(PackedLayout::kF32, kTile), [m] {
            const GemmArgs args{kSize,       kSize, kSize,       m->a.data(), kSize,
                                m->b.data(), kSize, m->c.data(), kSize};
            table().gemm(args, 0, kSize / kernels::kGemmRows);
          }};
}

}  // namespace

std::vector<Case> dense_cases() {
  std::vector<Case> cases;
  for (const Shape& s : kShapes) {
    cases.push_back({std::string("matmul_") + s.name + "_" + std::to_string(kRows) + "x" +
                         std::to_string(kCols) + "_t" + std::to_string(s.tokens),
                     [s] { return prepare(s); }});
  }
  cases.push_back({"gemm_128x128x128", prepare_gemm});
  return cases;
}

}  // namespace driftwood::instructions
