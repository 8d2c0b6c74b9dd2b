#include "format/mlx.h"

#include "format/test_files.h"

namespace driftwood::format {
namespace {

using nlohmann::json;

// Stored tensors over one zeroed buffer.
class Stored {
 public:
  Stored& add(const std::string& name, DType dtype, std::vector<int64_t> shape) {
    size_t bytes = dtype_size(dtype);
    for (const int64_t d : shape) bytes *= static_cast<size_t>(d);
    list_.push_back({name, dtype, std::move(shape), std::span<const uint8_t>(zeros_).first(bytes)});
    return *this;
  }
  // A module of [n, k] as MLX stores it.
  Stored& module(const std::string& name, int64_t n, int64_t k, int bits, int group,
                 DType scale = DType::kBF16) {
    return add(name + ".weight", DType::kU32, {n, k * bits / 32})
        .add(name + ".scales", scale, {n, k / group})
        .add(name + ".biases", scale, {n, k / group});
  }
  const std::vector<StoredTensor>& list() const { return list_; }

 private:
  std::vector<uint8_t> zeros_ = std::vector<uint8_t>(1 << 16);
  std::vector<StoredTensor> list_;
};

Result<std::vector<TensorInfo>> join(const Stored& stored, const char* config) {
  return join_mlx(stored.list(), json::parse(config), "m");
}

constexpr const char* kFourBits = R"({"quantization":{"group_size":64,"bits":4,"mode":"affine"}})";

TEST(Mlx, JoinsModulesAndKeepsDenseTensors) {
  Stored stored;
  stored.module("l.q", 8, 256, 4, 64).add("l.norm.weight", DType::kBF16, {256});
  const auto t = join(stored, kFourBits);
  ASSERT_TRUE(t.is_ok()) << t.status().message();
  ASSERT_EQ(t->size(), 2u);
  EXPECT_EQ((*t)[0].name, "l.q.weight");
  EXPECT_EQ((*t)[0].encoding, Encoding::kMlxAffine);
  EXPECT_EQ((*t)[0].shape, (std::vector<int64_t>{8, 256}));
  EXPECT_EQ((*t)[0].bits, 4);
  EXPECT_EQ((*t)[0].group_size, 64);
  EXPECT_EQ((*t)[0].scale_dtype, DType::kBF16);
  EXPECT_EQ((*t)[0].scales.size(), 8u * 4 * 2);
  EXPECT_EQ((*t)[1].encoding, Encoding::kDense);
}

TEST(Mlx, PerModuleSettings) {
  Stored stored;
  stored.module("l.q", 8, 256, 8, 32, DType::kF16)
      .module("l.k", 8, 256, 4, 64)
      .add("head.weight", DType::kF16, {8, 256});
  const auto t = join(
      stored, R"({"quantization":{"group_size":64,"bits":4,"l.q":{"bits":8,"group_size":32},"head":false}})");
  ASSERT_TRUE(t.is_ok()) << t.status().message();
  EXPECT_EQ((*t)[0].bits, 8);
  EXPECT_EQ((*t)[0].group_size, 32);
  EXPECT_EQ((*t)[0].shape[1], 256);
  EXPECT_EQ((*t)[1].bits, 4);
  EXPECT_EQ((*t)[2].encoding, Encoding::kDense);
}

TEST(Mlx, ErrorsNameTheTensor) {
  const auto expect = [](const Stored& s, const char* config, Code code, const char* word) {
    const Status status = join(s, config).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  };
  constexpr auto kInvalid = Code::kInvalidArgument;
  expect(Stored().add("q.weight", DType::kU32, {8, 32}), kFourBits, kInvalid, "q.scales");
  expect(Stored().add("q.scales", DType::kF16, {8, 4}), kFourBits, kInvalid, "q.weight");
  expect(Stored().add("q.weight", DType::kU32, {8, 32}).add("q.biases", DType::kF16, {8, 4}), kFourBits,
         kInvalid, "q.scales");
  expect(Stored().add("q.weight", DType::kU32, {8, 32}).add("q.scales", DType::kF16, {8, 4}), kFourBits,
         kInvalid, "q.biases");
  expect(Stored().module("q", 8, 256, 8, 64), kFourBits, kInvalid, "q.weight");
  expect(Stored().module("q", 8, 256, 4, 32), kFourBits, kInvalid, "[8, 4]");
  expect(Stored().module("q", 8, 256, 4, 64, DType::kI16), kFourBits, kInvalid, "I16");
  expect(Stored()
             .add("q.weight", DType::kU32, {8, 32})
             .add("q.scales", DType::kF16, {8, 4})
             .add("q.biases", DType::kBF16, {8, 4}),
         kFourBits, kInvalid, "BF16");
  expect(Stored()
             .add("q.weight", DType::kF16, {8, 32})
             .add("q.scales", DType::kF16, {8, 4})
             .add("q.biases", DType::kF16, {8, 4}),
         kFourBits, kInvalid, "U32");
  Stored good;
  good.module("q", 8, 256, 4, 64);
  expect(good, R"({"quantization":{"group_size":64,"bits":4,"q":false}})", kInvalid, "not quantised");
  expect(good, R"({"quantization":{"group_size":64,"bits":4,"q":7}})", kInvalid, "object or false");
  expect(good, R"({"quantization":{"group_size":64,"bits":3}})", Code::kUnimplemented, "3 bits");
  expect(good, R"({"quantization":{"group_size":48,"bits":4}})", Code::kUnimplemented, "groups of 48");
  expect(good, R"({"quantization":{"group_size":64,"bits":4,"mode":"mxfp4"}})", Code::kUnimplemented,
         "mxfp4");
  expect(good, R"({"quantization":{"bits":4}})", kInvalid, "group_size");
  EXPECT_EQ(check_quantisation(json::parse(R"({"quantization":[]})"), "c").code(), kInvalid);
  EXPECT_EQ(check_quantisation(json::parse(R"({"quantization":{"bits":2,"group_size":64}})"), "c").code(),
            Code::kUnimplemented);
}

}  // namespace
}  // namespace driftwood::format
