// Real model files: the default model and the fixtures, when they are at hand.
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>

#include "format/checkpoint.h"

namespace driftwood::format {
namespace {

std::shared_ptr<const Checkpoint> open_or_fail(const std::string& path) {
  auto c = open_checkpoint(path);
  EXPECT_TRUE(c.is_ok()) << c.status().message();
  return c.is_ok() ? *c : nullptr;
}

TEST(RealFiles, SmolLm2Gguf) {
  const char* path = std::getenv("DRIFTWOOD_SMOLLM2");
  if (path == nullptr) GTEST_SKIP() << "set DRIFTWOOD_SMOLLM2 to the SmolLM2 GGUF file to run this";
  const auto c = open_or_fail(path);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->format(), FileFormat::kGguf);
  EXPECT_EQ(c->tensors().size(), 272u);
  EXPECT_EQ(metadata_string(*c, "general.architecture").value(), "llama");
  EXPECT_EQ(metadata_int(*c, "llama.block_count").value(), 30);
  EXPECT_EQ(metadata_int(*c, "llama.attention.head_count_kv").value(), 3);
  EXPECT_EQ(metadata_float(*c, "llama.rope.freq_base").value(), 100000.0);
  EXPECT_EQ(metadata_bool_or(*c, "tokenizer.ggml.add_bos_token"), false);
  EXPECT_EQ(c->metadata("tokenizer.ggml.tokens")->array.size(), 49152u);
  EXPECT_EQ(c->metadata("tokenizer.ggml.tokens")->array[1].string, "<|im_start|>");
  const TensorInfo* embed = c->find("token_embd.weight");
  ASSERT_NE(embed, nullptr);
  EXPECT_EQ(embed->encoding, Encoding::kQ8_0);
  EXPECT_EQ(embed->shape, (std::vector<int64_t>{49152, 576}));
  EXPECT_EQ(c->find("blk.0.ffn_down.weight")->encoding, Encoding::kQ4_1);
  EXPECT_EQ(c->find("blk.0.ffn_down.weight")->shape, (std::vector<int64_t>{576, 1536}));
  EXPECT_EQ(c->fingerprint_hex(), open_or_fail(path)->fingerprint_hex());
}

std::string fixture(const std::string& name) {
  const char* models = std::getenv("DRIFTWOOD_FIXTURE_MODELS");
  if (models == nullptr) return "";
  const std::string path = std::string(models) + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}
#define DW_NEED_FIXTURE(name)             \
  const std::string path = fixture(name); \
  if (path.empty())                       \
  GTEST_SKIP() << "set DRIFTWOOD_FIXTURE_MODELS to the unpacked fixtures' models folder to run this"

TEST(RealFiles, Llama3) {
  DW_NEED_FIXTURE("llama3");
  const auto c = open_or_fail(path);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->format(), FileFormat::kHuggingFace);
  EXPECT_EQ(metadata_string(*c, "rope_parameters.rope_type").value(), "llama3");
  EXPECT_EQ(c->metadata("architectures")->array.at(0).string, "LlamaForCausalLM");
  const TensorInfo* embed = c->find("model.embed_tokens.weight");
  ASSERT_NE(embed, nullptr);
  EXPECT_EQ(embed->dtype, DType::kBF16);
  EXPECT_EQ(embed->shape, (std::vector<int64_t>{320, 128}));
  EXPECT_EQ(embed->bytes.size(), 320u * 128 * 2);
}

TEST(RealFiles, MlxFourAndEightBits) {
  for (const auto& [name, bits] : {std::pair{"llama3_mlx4", 4}, std::pair{"qwen2_mlx8", 8}}) {
    DW_NEED_FIXTURE(name);
    const auto c = open_or_fail(path);
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->format(), FileFormat::kMlx);
    const TensorInfo* down = c->find("model.layers.0.mlp.down_proj.weight");
    ASSERT_NE(down, nullptr);
    EXPECT_EQ(down->encoding, Encoding::kMlxAffine);
    EXPECT_EQ(down->bits, bits);
    EXPECT_EQ(down->group_size, 64);
    EXPECT_EQ(down->shape, (std::vector<int64_t>{128, 256}));
    EXPECT_EQ(down->scales.size(), 128u * 4 * dtype_size(down->scale_dtype));
    EXPECT_EQ(c->find("model.layers.0.mlp.down_proj.scales"), nullptr);
    EXPECT_EQ(c->find("model.layers.0.input_layernorm.weight")->encoding, Encoding::kDense);
  }
}

}  // namespace
}  // namespace driftwood::format
