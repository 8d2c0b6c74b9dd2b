// The operations on rows and positions, in the form the engine calls them (SmolLM2-135M: E 576, F 1536).
#include <memory>

#include "tests/instructions/workload.h"

namespace driftwood::instructions {
namespace {

constexpr int64_t kTokens = 16, kEmbedding = 576, kHidden = 1536;
constexpr int64_t kHeads = 9, kDim = 64;

struct Rows {
  explicit Rows(int64_t width)
      : x(kTokens * width, 0.5f), y(x), weight(width, 1.0f), out(kTokens * width), q8(kTokens, width) {}
  std::vector<float> x, y, weight, out;
  Activations q8;
};

// Sum of squares with the residual, then the scaled row, then quantised.
Work prepare_rms_norm() {
  auto r = std::make_shared<Rows>(kEmbedding);
  return {"value", kTokens * kEmbedding, 7.0 / 8 + kQuantiseBlock / 32, [r] {
            const RmsNormArgs args{kTokens,          kEmbedding, r->x.data(), r->y.data(),
                                   r->weight.data(), 1e-5f,      nullptr,     r->q8.view()};
            table().rms_norm(args, 0, kTokens);
          }};
}

Work prepare_quantise() {
  auto r = std::make_shared<Rows>(kEmbedding);
  return {"value", kTokens * kEmbedding, kQuantiseBlock / 32,
          [r] { table().quantise({kTokens, kEmbedding, r->x.data(), r->q8.view()}, 0, kTokens); }};
}

Work prepare_swiglu() {
  auto r = std::make_shared<Rows>(kHidden);
  return {"value", kTokens * kHidden, (7 + kExp) / 8 + kQuantiseBlock / 32, [r] {
            const SwigluArgs args{kTokens, kHidden, r->x.data(), r->y.data(), kHidden, nullptr, r->q8.view()};
            table().swiglu(args, 0, kTokens);
          }};
}

Work prepare_softmax() {
  auto r = std::make_shared<Rows>(kHidden);
  return {"value", kTokens * kHidden, (8 + kExp) / 8,
          [r] { table().softmax({kTokens, kHidden, r->x.data(), r->out.data()}, 0, kTokens); }};
}

Work prepare_add() {
  constexpr int64_t kCount = kTokens * kHidden;
  auto r = std::make_shared<Rows>(kHidden);
  return {"value", kCount, 3.0 / 8, [r] {
            const AddArgs args{kCount, r->x.data(), r->y.data(), r->out.data()};
            table().add(args, 0, (kCount + kernels::kElementPiece - 1) / kernels::kElementPiece);
          }};
}

// Per 16 values: 2 each of load, swap, multiply, FMA and store; cosine and sine cost a load and two
// permutations, the sine two sign changes.
constexpr double kLeastInterleaved = (5 * 2 + 3 + 5) / 16.0;
// Per 16 pairs: 4 loads (two for each half), 4 of cosine and sine, 4 multiplications, 4 FMAs, 4 stores.
constexpr double kLeastHalves = 5 * 4 / 32.0;

Work prepare_rope(RopeStyle style) {
  auto r = std::make_shared<Rows>(kEmbedding);
  return {"value", kTokens * kEmbedding, style == RopeStyle::kHalf ? kLeastHalves : kLeastInterleaved,
          [r, style] {
            const RopeArgs args{kTokens,     kHeads,     kDim,        kDim / 2,   style,
                                r->x.data(), kEmbedding, r->y.data(), r->y.data()};
            table().rope(args, 0, kTokens);
          }};
}

// 32 values: 4 loads and 5 to part the codes; 4 registers to widen, convert, scale and store; scale and
// minimum.
Work prepare_embed() {
  struct Table {
    Bytes bytes{kRowGroup * kEmbedding};
    std::vector<int32_t> ids{5, 0, 15, 9, 2, 7, 1, 12, 3, 14, 8, 4, 11, 6, 13, 10};
    std::vector<float> out = std::vector<float>(kTokens * kEmbedding);
  };
  auto t = std::make_shared<Table>();
  return {"value", kTokens * kEmbedding, (4 + 5 + 4 * 4 + 4) / 32.0, [t] {
            const PackedMatrix matrix{PackedLayout::kP4H, true, 0, kRowGroup, kEmbedding, t->bytes.data()};
            table().embed({kTokens, t->ids.data(), matrix, t->out.data()}, 0, kTokens);
          }};
}

}  // namespace

std::vector<Case> row_cases() {
  return {
      {"rms_norm_q8_t16", prepare_rms_norm},
      {"quantise_t16", prepare_quantise},
      {"swiglu_q8_t16", prepare_swiglu},
      {"softmax_t16", prepare_softmax},
      {"add", prepare_add},
      {"rope_interleaved_t16", [] { return prepare_rope(RopeStyle::kInterleaved); }},
      {"rope_half_t16", [] { return prepare_rope(RopeStyle::kHalf); }},
      {"embed_p4h_min_t16", prepare_embed},
  };
}

}  // namespace driftwood::instructions
