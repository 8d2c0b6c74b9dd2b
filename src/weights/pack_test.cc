#include "weights/pack.h"

#include <gtest/gtest.h>

#include "weights/fake_checkpoint.h"

namespace driftwood::weights {
namespace {

using format::Encoding;

struct Case {
  const char* name;
  Encoding encoding;
  DType dtype;  // of dense values or MLX scales
  int bits;
  int group_size;
  PackedForm form;
};

const Case kCases[] = {
    {"F32", Encoding::kDense, DType::kF32, 0, 0, {PackedLayout::kF32, false, 0}},
    {"F16", Encoding::kDense, DType::kF16, 0, 0, {PackedLayout::kF16, false, 0}},
    {"BF16", Encoding::kDense, DType::kBF16, 0, 0, {PackedLayout::kBF16, false, 0}},
    {"Q4_0", Encoding::kQ4_0, DType::kF16, 0, 0, {PackedLayout::kP4H, false, 8}},
    {"Q4_1", Encoding::kQ4_1, DType::kF16, 0, 0, {PackedLayout::kP4H, true, 0}},
    {"Q5_0", Encoding::kQ5_0, DType::kF16, 0, 0, {PackedLayout::kP8H, false, 0}},
    {"Q5_1", Encoding::kQ5_1, DType::kF16, 0, 0, {PackedLayout::kP8H, true, 0}},
    {"Q8_0", Encoding::kQ8_0, DType::kF16, 0, 0, {PackedLayout::kP8H, false, 0}},
    {"Mlx4F16Group32", Encoding::kMlxAffine, DType::kF16, 4, 32, {PackedLayout::kP4H, true, 0}},
    {"Mlx4F16Group64", Encoding::kMlxAffine, DType::kF16, 4, 64, {PackedLayout::kP4H, true, 0}},
    {"Mlx4BF16Group128", Encoding::kMlxAffine, DType::kBF16, 4, 128, {PackedLayout::kP4F, true, 0}},
    {"Mlx4F32Group64", Encoding::kMlxAffine, DType::kF32, 4, 64, {PackedLayout::kP4F, true, 0}},
    {"Mlx8F16Group64", Encoding::kMlxAffine, DType::kF16, 8, 64, {PackedLayout::kP8H, true, -128}},
    {"Mlx8BF16Group32", Encoding::kMlxAffine, DType::kBF16, 8, 32, {PackedLayout::kP8F, true, -128}},
    {"Mlx8F32Group128", Encoding::kMlxAffine, DType::kF32, 8, 128, {PackedLayout::kP8F, true, -128}},
};

class PackTest : public ::testing::TestWithParam<Case> {
 protected:
  void add(const std::string& name, std::vector<int64_t> shape) {
    const Case& c = GetParam();
    model_.add(name, c.encoding, std::move(shape), c.dtype, c.bits, c.group_size);
  }
  // Packs in pieces, last groups first, over memory full of rubbish.
  PackedMatrix pack(const MatrixPlan& plan, int64_t step) {
    packed_.assign(plan.matrix.size_bytes(), 0xa5);
    for (int64_t end = plan.matrix.groups(); end > 0; end -= step) {
      pack_groups(plan, std::max<int64_t>(0, end - step), end, packed_.data());
    }
    PackedMatrix m = plan.matrix;
    m.data = packed_.data();
    return m;
  }
  void expect_rows(const PackedMatrix& m, int64_t first, const format::TensorInfo& t) {
    std::vector<float> row(static_cast<size_t>(m.cols));
    for (int64_t r = 0; r < t.shape[0]; ++r) {
      unpack_row(m, first + r, row.data());
      for (int64_t k = 0; k < m.cols; ++k) {
        ASSERT_EQ(f32_bits(row[static_cast<size_t>(k)]), f32_bits(decode(t, r * m.cols + k)))
            << r << "," << k;
      }
    }
  }
  FakeCheckpoint model_;
  std::vector<uint8_t> packed_;
};

TEST_P(PackTest, UnpacksToTheFilesValuesBitForBit) {
  const int64_t shapes[][2] = {{1, 128}, {16, 256}, {17, 1152}, {45, 2176}};
  for (const auto& s : shapes) {
    const std::string name = "w" + std::to_string(s[0]);
    add(name, {s[0], s[1]});
    auto plan = plan_matrix(model_, {"w", {name}});
    ASSERT_TRUE(plan.is_ok()) << plan.status().message();
    EXPECT_EQ(plan->matrix.layout, GetParam().form.layout);
    EXPECT_EQ(plan->matrix.has_min, GetParam().form.has_min);
    EXPECT_EQ(plan->matrix.zero_point, GetParam().form.zero_point);
    const PackedMatrix m = pack(*plan, 2);
    expect_rows(m, 0, *model_.find(name));
    // Rows past N are all zero bytes: their lanes in every record.
    std::vector<float> row(static_cast<size_t>(m.cols));
    for (int64_t r = m.rows; r < m.groups() * kRowGroup; ++r) {
      PackedMatrix plain = m;
      plain.zero_point = 0;
      unpack_row(plain, r, row.data());
      for (const float x : row) ASSERT_EQ(f32_bits(x), 0u);
    }
  }
}

TEST_P(PackTest, JoinsRowsAcrossGroupBorders) {
  add("q", {23, 256});
  add("k", {7, 256});
  add("v", {20, 256});
  auto plan = plan_matrix(model_, {"qkv", {"q", "k", "v"}});
  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_EQ(plan->matrix.rows, 50);
  const PackedMatrix m = pack(*plan, 1);
  expect_rows(m, 0, *model_.find("q"));
  expect_rows(m, 23, *model_.find("k"));
  expect_rows(m, 30, *model_.find("v"));
}

INSTANTIATE_TEST_SUITE_P(Encodings, PackTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PackErrors, NameTensorsAndReasons) {
  FakeCheckpoint model;
  model.add("a", Encoding::kQ4_0, {16, 64});
  model.add("b", Encoding::kQ4_1, {16, 64});
  model.add("c", Encoding::kQ4_0, {16, 32});
  model.add("cube", Encoding::kQ4_0, {2, 16, 64});
  model.add("vector", Encoding::kDense, {64}, DType::kBF16);
  model.add("matrix", Encoding::kDense, {2, 64});
  struct Bad {
    MatrixRequest request;
    Code code;
    std::vector<const char*> words;
  };
  const Bad bad[] = {
      {{"m", {"none"}}, Code::kNotFound, {"fake.gguf", "'none'"}},
      {{"m", {}}, Code::kInvalidArgument, {"'m'"}},
      {{"m", {"a", "b"}}, Code::kInvalidArgument, {"'a'", "'b'", "zero point 8", "with minima"}},
      {{"m", {"a", "c"}}, Code::kInvalidArgument, {"'a'", "'c'", "64", "32"}},
      {{"m", {"cube"}}, Code::kInvalidArgument, {"'cube'", "[2, 16, 64]"}},
      {{"m", {"vector"}}, Code::kInvalidArgument, {"'vector'"}},
  };
  for (const Bad& b : bad) {
    const Status status = plan_matrix(model, b.request).status();
    EXPECT_EQ(status.code(), b.code);
    for (const char* word : b.words)
      EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
  EXPECT_EQ(vector_length(model, {"v", "vector"}).value(), 64);
  EXPECT_EQ(vector_length(model, {"v", "matrix"}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(vector_length(model, {"v", "a"}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(vector_length(model, {"v", "none"}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace driftwood::weights
