// Configuration, tensor checks and graphs of llama checkpoints described in memory: every wrong file is
// refused with a message that names what is wrong.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>

#include "model/model.h"

namespace driftwood::model {
namespace {

using format::Encoding;
using format::FileFormat;
using format::MetadataValue;

class DescribedCheckpoint final : public format::Checkpoint {
 public:
  explicit DescribedCheckpoint(FileFormat kind) : kind_(kind) {}

  void set(const std::string& key, int64_t value) {
    MetadataValue v;
    v.kind = MetadataValue::Kind::kInt;
    v.integer = value;
    v.unsigned_integer = static_cast<uint64_t>(value);
    v.number = static_cast<double>(value);
    metadata_[key] = v;
  }
  void set(const std::string& key, double value) {
    MetadataValue v;
    v.kind = MetadataValue::Kind::kFloat;
    v.number = value;
    metadata_[key] = v;
  }
  void set(const std::string& key, const char* value) {
    MetadataValue v;
    v.kind = MetadataValue::Kind::kString;
    v.string = value;
    metadata_[key] = v;
  }
  void set_bool(const std::string& key, bool value) {
    MetadataValue v;
    v.kind = MetadataValue::Kind::kBool;
    v.boolean = value;
    metadata_[key] = v;
  }
  void erase(const std::string& key) { metadata_.erase(key); }
  format::TensorInfo& tensor(const std::string& name, std::vector<int64_t> shape = {}) {
    for (format::TensorInfo& t : tensors_) {
      if (t.name == name) return t;
    }
    format::TensorInfo t;
    t.name = name;
    t.shape = std::move(shape);
    tensors_.push_back(t);
    return tensors_.back();
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const format::TensorInfo& t) { return t.name == name; });
  }

  FileFormat format() const override { return kind_; }
  const std::string& path() const override { return path_; }
  const std::vector<format::TensorInfo>& tensors() const override { return tensors_; }
  const format::TensorInfo* find(const std::string& name) const override {
    for (const format::TensorInfo& t : tensors_) {
      if (t.name == name) return &t;
    }
    return nullptr;
  }
  int64_t total_tensor_bytes() const override { return 0; }
  const MetadataValue* metadata(const std::string& key) const override {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? nullptr : &found->second;
  }
  Result<std::string> side_file(const std::string& name) const override { return not_found(name); }
  std::string fingerprint_hex() const override { return ""; }
  std::string file_stamp() const override { return ""; }
  void drop_pages(const format::TensorInfo&) const override {}

 private:
  FileFormat kind_;
  std::string path_ = "some/model";
  std::vector<format::TensorInfo> tensors_;
  std::map<std::string, MetadataValue> metadata_;
};

// One layer: width 64, 4 heads over 2 KV heads of 16, feed forward 96, vocabulary 100.
DescribedCheckpoint folder() {
  DescribedCheckpoint c(FileFormat::kHuggingFace);
  c.set("model_type", "llama");
  c.set("vocab_size", int64_t{100});
  c.set("num_hidden_layers", int64_t{1});
  c.set("max_position_embeddings", int64_t{128});
  c.set("hidden_size", int64_t{64});
  c.set("intermediate_size", int64_t{96});
  c.set("num_attention_heads", int64_t{4});
  c.set("num_key_value_heads", int64_t{2});
  c.tensor("model.embed_tokens.weight", {100, 64});
  c.tensor("lm_head.weight", {100, 64});
  c.tensor("model.norm.weight", {64});
  const std::string p = "model.layers.0.";
  c.tensor(p + "input_layernorm.weight", {64});
  c.tensor(p + "post_attention_layernorm.weight", {64});
  c.tensor(p + "self_attn.q_proj.weight", {64, 64});
  c.tensor(p + "self_attn.k_proj.weight", {32, 64});
  c.tensor(p + "self_attn.v_proj.weight", {32, 64});
  c.tensor(p + "self_attn.o_proj.weight", {64, 64});
  c.tensor(p + "mlp.gate_proj.weight", {96, 64});
  c.tensor(p + "mlp.up_proj.weight", {96, 64});
  c.tensor(p + "mlp.down_proj.weight", {64, 96});
  return c;
}

DescribedCheckpoint gguf() {
  DescribedCheckpoint c(FileFormat::kGguf);
  c.set("general.architecture", "llama");
  c.set("llama.block_count", int64_t{1});
  c.set("llama.context_length", int64_t{128});
  c.set("llama.embedding_length", int64_t{64});
  c.set("llama.feed_forward_length", int64_t{96});
  c.set("llama.attention.head_count", int64_t{4});
  c.set("llama.attention.head_count_kv", int64_t{2});
  c.set("llama.attention.layer_norm_rms_epsilon", 1e-5);
  c.tensor("token_embd.weight", {100, 64});
  c.tensor("output_norm.weight", {64});
  c.tensor("blk.0.attn_norm.weight", {64});
  c.tensor("blk.0.ffn_norm.weight", {64});
  c.tensor("blk.0.attn_q.weight", {64, 64});
  c.tensor("blk.0.attn_k.weight", {32, 64});
  c.tensor("blk.0.attn_v.weight", {32, 64});
  c.tensor("blk.0.attn_output.weight", {64, 64});
  c.tensor("blk.0.ffn_gate.weight", {96, 64});
  c.tensor("blk.0.ffn_up.weight", {96, 64});
  c.tensor("blk.0.ffn_down.weight", {64, 96});
  return c;
}

struct Opened {
  Status status;
  ModelConfig config;
  std::vector<format::MatrixRequest> matrices;
  std::vector<format::VectorRequest> vectors;
  graph::Graph graph;
};

Opened open(const format::Checkpoint& c) {
  Opened o;
  const auto architecture = find_architecture(c);
  if (!architecture.is_ok()) return {architecture.status()};
  auto config = (*architecture)->configure(c);
  if (!config.is_ok()) return {config.status()};
  o.config = *config;
  o.status = (*architecture)->requests(c, o.config, &o.matrices, &o.vectors);
  if (!o.status.is_ok()) return o;
  auto graph = (*architecture)->build(c, o.config);
  if (!graph.is_ok()) return {graph.status()};
  o.graph = *graph;
  o.status = graph::validate(o.graph);
  return o;
}

void expect_refused(const format::Checkpoint& c, Code code, const std::string& words) {
  const Status status = open(c).status;
  EXPECT_EQ(status.code(), code) << status.to_string();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("some/model"), std::string::npos)
      << "the file is named: " << status.message();
}

std::vector<std::string> keys(const Opened& o) {
  std::vector<std::string> result;
  for (const auto& m : o.matrices) result.push_back(m.key);
  return result;
}

TEST(Llama, JoinsWhatSharesItsInput) {
  const Opened o = open(folder());
  ASSERT_TRUE(o.status.is_ok()) << o.status.message();
  EXPECT_EQ(keys(o), (std::vector<std::string>{"token_embd", "blk.0.attn_qkv", "blk.0.attn_output",
                                               "blk.0.ffn_gate_up", "blk.0.ffn_down", "output"}));
  EXPECT_EQ(o.config.head_dim, 16);
  EXPECT_EQ(o.config.rope_style, RopeStyle::kHalf);
}

TEST(Llama, KeepsUnlikeLayoutsAndBiasedMatricesApart) {
  DescribedCheckpoint c = gguf();
  c.tensor("blk.0.attn_v.weight").encoding = Encoding::kQ8_0;
  c.tensor("blk.0.ffn_up.bias", {96});
  const Opened o = open(c);
  ASSERT_TRUE(o.status.is_ok()) << o.status.message();
  EXPECT_EQ(keys(o), (std::vector<std::string>{"token_embd", "blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v",
                                               "blk.0.attn_output", "blk.0.ffn_gate", "blk.0.ffn_up",
                                               "blk.0.ffn_down"}))
      << "and no head: it is tied";
  const std::string text = graph::to_string(o.graph);
  EXPECT_NE(text.find("{blk.0.attn_q} {blk.0.attn_k} {blk.0.attn_v}"), std::string::npos) << text;
  EXPECT_NE(text.find("-> logits[R,100] {token_embd}"), std::string::npos) << text;
  EXPECT_EQ(o.config.rope_style, RopeStyle::kInterleaved);
}

TEST(Llama, RefusesWrongConfigurations) {
  DescribedCheckpoint c = folder();
  c.set("model_type", "mamba");
  expect_refused(c, Code::kUnimplemented, "architecture \"mamba\" is not supported (supported: llama");
  c = folder();
  c.erase("num_hidden_layers");
  EXPECT_NE(open(c).status.message().find("num_hidden_layers"), std::string::npos);
  c = folder();
  c.set("num_key_value_heads", int64_t{3});
  expect_refused(c, Code::kInvalidArgument, "4 attention heads are not a multiple of 3 KV heads");
  c = folder();
  c.set("hidden_size", int64_t{-5});
  expect_refused(c, Code::kInvalidArgument, "hidden_size is -5");
  c = folder();
  c.set("num_attention_heads", int64_t{0});
  expect_refused(c, Code::kInvalidArgument, "num_attention_heads is 0");
  c = folder();
  c.set("hidden_act", "gelu");
  expect_refused(c, Code::kUnimplemented, "hidden_act \"gelu\"");
  c = folder();
  c.set("rope_scaling.type", "longrope");
  expect_refused(c, Code::kUnimplemented, "rope scaling \"longrope\"");
  c = folder();
  c.set("rms_norm_eps", 0.0);
  expect_refused(c, Code::kInvalidArgument, "epsilon");
  c = gguf();
  c.set("llama.expert_count", int64_t{8});
  expect_refused(c, Code::kUnimplemented, "llama.expert_count");
  c = gguf();
  c.set("llama.rope.dimension_count", int64_t{32});
  expect_refused(c, Code::kInvalidArgument, "32 rotary dims exceed the head size of 16");
}

TEST(Llama, RefusesMissingAndMisshapenTensors) {
  for (const std::string name :
       {"model.norm.weight", "lm_head.weight", "model.layers.0.mlp.up_proj.weight"}) {
    DescribedCheckpoint c = folder();
    c.remove(name);
    expect_refused(c, Code::kInvalidArgument, "tensor " + name + " is missing");
  }
  DescribedCheckpoint c = folder();
  c.tensor("model.layers.0.self_attn.k_proj.weight").shape = {48, 64};
  expect_refused(c, Code::kInvalidArgument,
                 "k_proj.weight has shape [48, 64], the configuration asks for [32, 64]");
  c = folder();
  c.set_bool("attention_bias", true);
  expect_refused(c, Code::kInvalidArgument, "q_proj.bias is missing");
}

TEST(Llama, ReadsRopeOfBothWorlds) {
  DescribedCheckpoint c = folder();
  c.set("rope_theta", 500000.0);
  c.set("rope_scaling.rope_type", "llama3");
  c.set("rope_scaling.factor", 8.0);
  c.set("rope_scaling.original_max_position_embeddings", int64_t{64});
  const RopeParameters old_style = open(c).config.rope;
  EXPECT_EQ(old_style.scaling, RopeScaling::kLlama3);
  EXPECT_EQ(old_style.theta, 500000.0);
  EXPECT_EQ(old_style.original_context, 64);

  c = gguf();
  const std::vector<float> divisors = {1, 2, 3, 4, 5, 6, 7, 8};
  format::TensorInfo& t = c.tensor("rope_freqs.weight", {8});
  t.bytes = {reinterpret_cast<const uint8_t*>(divisors.data()), divisors.size() * sizeof(float)};
  const RopeParameters with_divisors = open(c).config.rope;
  EXPECT_EQ(with_divisors.divisors, divisors);
  EXPECT_NE(open(c).config.rope_identity, open(gguf()).config.rope_identity);
}

}  // namespace
}  // namespace driftwood::model
