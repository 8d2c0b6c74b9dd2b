// Cases of the ops with weights: embed and matmul over every packed layout; and gemm.
#include "tests/conformance/cases.h"

namespace driftwood::conformance {
namespace {

using device::OpTable;

struct Layout {
  PackedLayout layout;
  bool has_min;
  int32_t zero_point;
  const char* name;
};
constexpr Layout kLayouts[] = {
    {PackedLayout::kP4H, false, 8, "P4H"},       {PackedLayout::kP4H, true, 0, "P4H+min"},
    {PackedLayout::kP4F, true, 0, "P4F+min"},    {PackedLayout::kP4F, false, 8, "P4F"},
    {PackedLayout::kP8H, false, 0, "P8H"},       {PackedLayout::kP8H, true, 0, "P8H+min"},
    {PackedLayout::kP8F, true, -128, "P8F+min"}, {PackedLayout::kP8F, false, 0, "P8F"},
    {PackedLayout::kF32, false, 0, "F32"},       {PackedLayout::kF16, false, 0, "F16"},
    {PackedLayout::kBF16, false, 0, "BF16"},
};

class Matrix {
 public:
  Matrix(const Layout& kind, int64_t rows, int64_t cols, uint64_t seed) {
    matrix_ = {kind.layout, kind.has_min, kind.zero_point, rows, cols, nullptr};
    bytes_ = Values<uint8_t>(static_cast<int64_t>(matrix_.size_bytes()));
    matrix_.data = bytes_.data();
    for (int64_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<uint8_t>(random_u64(seed, 1, i, 0));
    if (is_quantised(kind.layout)) {
      fill_parameters(seed);
    } else {
      fill_dense(seed);
    }
  }
  const PackedMatrix& view() const { return matrix_; }

 private:
  void put(uint8_t* at, float value, bool half) {
    if (half) {
      const uint16_t h = f32_to_f16(value);
      std::memcpy(at, &h, 2);
    } else {
      std::memcpy(at, &value, 4);
    }
  }
  // Padding rows keep random codes and parameters here: no kernel may let them reach an output.
  void fill_parameters(uint64_t seed) {
    const size_t record = block_record_bytes(matrix_.layout, matrix_.has_min);
    const bool four_bit = matrix_.layout <= PackedLayout::kP4F;
    const bool half = matrix_.layout == PackedLayout::kP4H || matrix_.layout == PackedLayout::kP8H;
    const size_t codes = four_bit ? 256 : 512;
    const size_t size = half ? 2 : 4;
    for (size_t start = 0, n = 0; start < matrix_.size_bytes(); start += record) {
      for (size_t i = codes; i < record; i += size) {
        put(bytes_.data() + start + i, (random_uniform(seed, 2, n++, 0) - 0.5f) * 0.1f, half);
      }
    }
  }
  void fill_dense(uint64_t seed) {
    const int64_t size = static_cast<int64_t>(dense_element_bytes(matrix_.layout));
    for (int64_t i = 0; i < bytes_.size() / size; ++i) {
      const float value = random_uniform(seed, 3, i, 0) - 0.5f;
      if (matrix_.layout == PackedLayout::kBF16) {
        const uint16_t h = f32_to_bf16(value);
        std::memcpy(bytes_.data() + i * 2, &h, 2);
      } else {
        put(bytes_.data() + i * size, value, size == 2);
      }
    }
  }

  PackedMatrix matrix_;
  Values<uint8_t> bytes_;
};

// Three matrices over the same activations (q, k, v), row stride wider than any of them, one with a bias.
struct Product {
  Product(const Layout& kind, int64_t rows, int64_t cols)
      : a(kind, rows, cols, 11),
        b(kind, rows + 5, cols, 12),
        c(kind, 16, cols, 13),
        bias(random_floats(rows, 14)) {}

  // Rows [first, first + tokens) of the activations; guard values between rows must survive.
  Floats run(Runner& runner, const Floats& x, Quantised& q8, int64_t first, int64_t tokens,
             bool quantised) const {
    const int64_t cols = a.view().cols;
    const int64_t stride = 2 * a.view().rows + 5 + 16 + 7;
    Floats out(tokens * stride, -7.0f);
    MatmulBatchArgs batch{3, {}};
    const Matrix* parts[] = {&a, &b, &c};
    int64_t column = 0;
    for (int i = 0; i < 3; ++i) {
      MatmulArgs& part = batch.parts[i];
      part.tokens = tokens;
      part.weight = parts[i]->view();
      part.x = x.data() + first * cols;
      if (quantised) {
        const ActivationsQ8 all = q8.view();
        const int64_t block = first * (cols / 32);
        part.q8 = {all.q + first * cols, all.d + block, all.s + block, all.isum + block};
      }
      part.bias = i == 0 ? bias.data() : nullptr;
      part.out = out.data() + column;
      part.out_stride = stride;
      column += part.weight.rows;
    }
    runner(&OpTable::matmul, batch);
    return out;
  }

  Matrix a;
  Matrix b;
  Matrix c;
  Floats bias;
};

std::string product_case(Runner& expected, Runner& actual, const Layout& kind, int64_t rows, int64_t cols,
                         int64_t tokens, bool quantised) {
  const std::string what =
      std::string("matmul ") + kind.name + (quantised || !is_quantised(kind.layout) ? "" : " x f32") +
      " N=" + std::to_string(rows) + " K=" + std::to_string(cols) + " T=" + std::to_string(tokens);
  const Product product(kind, rows, cols);
  const Floats x = random_floats(tokens * cols, 15);
  Quantised q8(tokens, cols / 32 * 32);
  if (quantised) expected(&OpTable::quantise, QuantiseArgs{tokens, cols, x.data(), q8.view()});
  const Floats all = product.run(actual, x, q8, 0, tokens, quantised);
  DW_RETURN_DIFFERENCE(compare(product.run(expected, x, q8, 0, tokens, quantised), all, what));
  const int64_t t = tokens / 2;
  return compare_row(all, t, product.run(actual, x, q8, t, 1, quantised), what);
}

}  // namespace

std::string matmul_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (const Layout& kind : kLayouts) {
    for (int64_t tokens : kTokenCounts) {
      DW_RETURN_DIFFERENCE(product_case(expected, actual, kind, 37, 544, tokens, is_quantised(kind.layout)));
    }
    for (int64_t rows : {1, 15, 16, 17, 64}) {
      for (int64_t cols : {32, 512, 1056}) {
        DW_RETURN_DIFFERENCE(product_case(expected, actual, kind, rows, cols, 3, is_quantised(kind.layout)));
      }
    }
    if (is_quantised(kind.layout)) {
      DW_RETURN_DIFFERENCE(product_case(expected, actual, kind, 17, 544, 3, false));
    } else {
      for (int64_t cols : {1, 7, 100, 513}) {
        DW_RETURN_DIFFERENCE(product_case(expected, actual, kind, 33, cols, 5, false));
      }
    }
  }
  return actual.error();
}

std::string embed_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  for (const Layout& kind : kLayouts) {
    for (int64_t cols : {32, 96, 576}) {
      for (int64_t tokens : kTokenCounts) {
        const Matrix table(kind, 50, cols, 16);
        Values<int32_t> ids(tokens);
        for (int64_t t = 0; t < tokens; ++t) ids[t] = static_cast<int32_t>((t * 7 + 49) % 50);
        Floats a(tokens * cols);
        Floats b(tokens * cols);
        expected(&OpTable::embed, EmbedArgs{tokens, ids.data(), table.view(), a.data()});
        actual(&OpTable::embed, EmbedArgs{tokens, ids.data(), table.view(), b.data()});
        DW_RETURN_DIFFERENCE(compare(a, b, std::string("embed ") + kind.name));
      }
    }
  }
  return actual.error();
}

std::string gemm_difference(Device& reference, Device& candidate) {
  Runner expected(reference);
  Runner actual(candidate);
  constexpr int64_t kShapes[][3] = {{1, 1, 1},      {1, 16, 512}, {3, 17, 513}, {8, 64, 32},
                                    {9, 100, 1030}, {40, 31, 7},  {5, 15, 0},   {33, 130, 129}};
  for (const auto& [m, n, k] : kShapes) {
    const int64_t lda = k + 3;
    const int64_t ldb = n + 1;
    const int64_t ldc = n + 5;
    const Floats a = random_floats(m * lda, 17);
    const Floats b = random_floats((k + 1) * ldb, 18);
    Floats x(m * ldc, -7.0f);
    Floats y(m * ldc, -7.0f);
    expected(&OpTable::gemm, GemmArgs{m, n, k, a.data(), lda, b.data(), ldb, x.data(), ldc});
    actual(&OpTable::gemm, GemmArgs{m, n, k, a.data(), lda, b.data(), ldb, y.data(), ldc});
    const std::string what = "gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    DW_RETURN_DIFFERENCE(compare(x, y, what));
  }
  return actual.error();
}

}  // namespace driftwood::conformance
