// Llama: the pre-norm decoder with rotary attention (grouped KV heads) and a SwiGLU feed forward. Serves
// Llama 1-3, SmolLM and every checkpoint that says it is one of them, from GGUF (general.architecture
// "llama": rotary pairs are neighbours) and from Hugging Face or MLX folders (model_type "llama": rotary
// pairs are half a head apart).
//
// Per layer: norm, q k v in one matmul, rope over q and k, KV stored, attention, output matmul, residual and
// norm, gate and up in one matmul, SwiGLU, down matmul. The last residual sum, the last norm and the head see
// only the rows whose logits are wanted.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "graph/builder.h"
#include "model/model.h"

namespace driftwood::model {
namespace {

using format::Checkpoint;
using format::FileFormat;

// Tensors of a layer: canonical key, and the names in the two worlds.
enum Slot { kAttnNorm, kQ, kK, kV, kO, kFfnNorm, kGate, kUp, kDown, kSlots };
struct SlotNames {
  const char* gguf;  // also the graph's key
  const char* folder;
};
constexpr std::array<SlotNames, kSlots> kSlotNames = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

bool is_gguf(const Checkpoint& c) { return c.format() == FileFormat::kGguf; }

std::string key_of(int64_t layer, const std::string& name) {
  return "blk." + std::to_string(layer) + "." + name;
}

std::string tensor_of(const Checkpoint& c, int64_t layer, Slot slot, const char* suffix) {
  if (is_gguf(c)) return key_of(layer, kSlotNames[slot].gguf) + suffix;
  return "model.layers." + std::to_string(layer) + "." + kSlotNames[slot].folder + suffix;
}
std::string embedding_name(const Checkpoint& c) {
  return is_gguf(c) ? "token_embd.weight" : "model.embed_tokens.weight";
}
std::string final_norm_name(const Checkpoint& c) {
  return is_gguf(c) ? "output_norm.weight" : "model.norm.weight";
}
std::string head_name(const Checkpoint& c) { return is_gguf(c) ? "output.weight" : "lm_head.weight"; }

int64_t outputs_of(const ModelConfig& m, Slot slot) {
  switch (slot) {
    case kQ:
      return m.heads * m.head_dim;
    case kK:
    case kV:
      return m.kv_heads * m.head_dim;
    case kGate:
    case kUp:
      return m.feed_forward;
    default:
      return m.width;
  }
}
int64_t inputs_of(const ModelConfig& m, Slot slot) {
  if (slot == kO) return m.heads * m.head_dim;
  return slot == kDown ? m.feed_forward : m.width;
}

// A folder's configuration declares its biases; a GGUF file simply has them.
bool has_bias(const Checkpoint& c, const ModelConfig& m, int64_t layer, Slot slot) {
  if (slot == kAttnNorm || slot == kFfnNorm) return false;
  if (is_gguf(c)) return c.find(tensor_of(c, layer, slot, ".bias")) != nullptr;
  return slot <= kO ? m.attention_bias : m.mlp_bias;
}

bool matches(const Checkpoint& c) {
  return format::metadata_string_or(c, is_gguf(c) ? "general.architecture" : "model_type") == "llama";
}

// ---- configuration ----

Status bad_key(const Checkpoint& c, const std::string& key, const std::string& what) {
  return invalid_argument(c.path() + ": " + key + " " + what);
}

// A dimension: present (or defaulted) and within sane bounds, so that no product below can overflow.
Result<int64_t> dimension(const Checkpoint& c, const std::string& key,
                          std::optional<int64_t> otherwise = {}) {
  constexpr int64_t kLargest = int64_t{1} << 24;
  int64_t value = 0;
  if (otherwise.has_value() && c.metadata(key) == nullptr) {
    value = *otherwise;
  } else {
    DW_ASSIGN_OR_RETURN(value, format::metadata_int(c, key));
  }
  if (value <= 0 || value > kLargest) {
    return bad_key(c, key, "is " + std::to_string(value) + ", expected 1 to " + std::to_string(kLargest));
  }
  return value;
}

Status check_heads(const Checkpoint& c, const ModelConfig& m) {
  if (m.heads % m.kv_heads != 0) {
    return invalid_argument(c.path() + ": " + std::to_string(m.heads) +
                            " attention heads are not a multiple of " + std::to_string(m.kv_heads) +
                            " KV heads");
  }
  if (m.layers > 4096 || m.heads > 65536 || m.head_dim > 4096) {
    return invalid_argument(c.path() + ": " + std::to_string(m.layers) + " layers of " +
                            std::to_string(m.heads) + " heads of " + std::to_string(m.head_dim) +
                            " are out of range");
  }
  if (!(m.norm_epsilon > 0.0f && m.norm_epsilon < 1.0f)) {
    return invalid_argument(c.path() + ": the norm epsilon must be between 0 and 1");
  }
  if (m.rope.dims > m.head_dim) {
    return invalid_argument(c.path() + ": " + std::to_string(m.rope.dims) +
                            " rotary dims exceed the head size of " + std::to_string(m.head_dim));
  }
  return validate(m.rope).with_context(c.path());
}

Result<std::vector<float>> read_rope_divisors(const Checkpoint& c) {
  const format::TensorInfo* tensor = c.find("rope_freqs.weight");
  if (tensor == nullptr) return std::vector<float>{};
  if (tensor->encoding != format::Encoding::kDense || tensor->dtype != DType::kF32) {
    return invalid_argument(c.path() + ": tensor rope_freqs.weight must be F32");
  }
  std::vector<float> divisors(tensor->bytes.size() / sizeof(float));
  std::memcpy(divisors.data(), tensor->bytes.data(), divisors.size() * sizeof(float));
  return divisors;
}

Status configure_gguf_rope(const Checkpoint& c, ModelConfig* m) {
  const std::string p = "llama.rope.";
  RopeParameters& rope = m->rope;
  DW_ASSIGN_OR_RETURN(rope.dims, dimension(c, p + "dimension_count", m->head_dim));
  rope.theta = format::metadata_float_or(c, p + "freq_base").value_or(10000.0);
  const auto type = format::metadata_string_or(c, p + "scaling.type");
  const auto legacy_linear = format::metadata_float_or(c, p + "scale_linear");
  rope.factor = format::metadata_float_or(c, p + "scaling.factor").value_or(legacy_linear.value_or(1.0));
  // A factor without a type means linear, as in files older than the type key.
  const bool factor_alone = legacy_linear.has_value() || c.metadata(p + "scaling.factor") != nullptr;
  auto scaling = rope_scaling_from_name(type.value_or(factor_alone ? "linear" : "none"));
  if (!scaling.is_ok()) return scaling.status().with_context(c.path() + ": " + p + "scaling.type");
  rope.scaling = *scaling;
  if (rope.factor <= 0.0) rope.factor = 1.0;  // files write 0 for "not scaled"
  rope.original_context =
      format::metadata_int_or(c, p + "scaling.original_context_length").value_or(m->context_length);
  if (const auto attention = format::metadata_float_or(c, p + "scaling.attn_factor"); attention.has_value()) {
    // The file's factor multiplies the magnitude of the scaling rule.
    DW_RETURN_IF_ERROR(validate(rope).with_context(c.path()));
    rope.attention_factor = *attention * static_cast<double>(rope_frequencies(rope, m->context_length).scale);
  }
  DW_ASSIGN_OR_RETURN(rope.divisors, read_rope_divisors(c));
  return Status::ok();
}

// Keys that may be absent, but if they are there must be what they should be: a number written as a text
// would otherwise silently become the default.
enum class Expect { kNumber, kText, kBool };
struct OptionalKey {
  const char* key;
  Expect kind;
};
constexpr OptionalKey kGgufOptional[] = {
    {"llama.rope.freq_base", Expect::kNumber},
    {"llama.rope.scale_linear", Expect::kNumber},
    {"llama.rope.scaling.type", Expect::kText},
    {"llama.rope.scaling.factor", Expect::kNumber},
    {"llama.rope.scaling.attn_factor", Expect::kNumber},
    {"llama.rope.scaling.original_context_length", Expect::kNumber},
    {"llama.expert_count", Expect::kNumber},
};
constexpr OptionalKey kFolderOptional[] = {
    {"rms_norm_eps", Expect::kNumber},
    {"rope_theta", Expect::kNumber},
    {"partial_rotary_factor", Expect::kNumber},
    {"hidden_act", Expect::kText},
    {"tie_word_embeddings", Expect::kBool},
    {"attention_bias", Expect::kBool},
    {"mlp_bias", Expect::kBool},
};
constexpr OptionalKey kFolderRope[] = {
    {"rope_theta", Expect::kNumber},
    {"rope_type", Expect::kText},
    {"type", Expect::kText},
    {"factor", Expect::kNumber},
    {"low_freq_factor", Expect::kNumber},
    {"high_freq_factor", Expect::kNumber},
    {"original_max_position_embeddings", Expect::kNumber},
    {"partial_rotary_factor", Expect::kNumber},
    {"attention_factor", Expect::kNumber},
    {"beta_fast", Expect::kNumber},
    {"beta_slow", Expect::kNumber},
    {"mscale", Expect::kNumber},
    {"mscale_all_dim", Expect::kNumber},
    {"truncate", Expect::kBool},
};

Status check_kinds(const Checkpoint& c, const std::string& prefix, std::span<const OptionalKey> keys) {
  using Kind = format::MetadataValue::Kind;
  for (const OptionalKey& optional : keys) {
    const std::string key = prefix + optional.key;
    const format::MetadataValue* value = c.metadata(key);
    if (value == nullptr) continue;
    const bool number =
        value->kind == Kind::kInt || value->kind == Kind::kUint || value->kind == Kind::kFloat;
    if (optional.kind == Expect::kNumber && !number) return bad_key(c, key, "must be a number");
    if (optional.kind == Expect::kText && value->kind != Kind::kString)
      return bad_key(c, key, "must be a text");
    if (optional.kind == Expect::kBool && value->kind != Kind::kBool)
      return bad_key(c, key, "must be true or false");
  }
  return Status::ok();
}

Result<ModelConfig> configure_gguf(const Checkpoint& c) {
  const std::string p = "llama.";
  DW_RETURN_IF_ERROR(check_kinds(c, "", kGgufOptional));
  if (format::metadata_int_or(c, p + "expert_count").value_or(0) > 0) {
    return unimplemented(c.path() + ": mixture-of-experts llama files are not supported (" + p +
                         "expert_count)");
  }
  ModelConfig m;
  m.rope_style = RopeStyle::kInterleaved;
  DW_ASSIGN_OR_RETURN(m.layers, dimension(c, p + "block_count"));
  DW_ASSIGN_OR_RETURN(m.context_length, dimension(c, p + "context_length"));
  DW_ASSIGN_OR_RETURN(m.width, dimension(c, p + "embedding_length"));
  DW_ASSIGN_OR_RETURN(m.feed_forward, dimension(c, p + "feed_forward_length"));
  DW_ASSIGN_OR_RETURN(m.heads, dimension(c, p + "attention.head_count"));
  DW_ASSIGN_OR_RETURN(m.kv_heads, dimension(c, p + "attention.head_count_kv", m.heads));
  DW_ASSIGN_OR_RETURN(m.head_dim, dimension(c, p + "attention.key_length", m.width / m.heads));
  DW_ASSIGN_OR_RETURN(const int64_t value_dim, dimension(c, p + "attention.value_length", m.head_dim));
  if (value_dim != m.head_dim)
    return bad_key(c, p + "attention.value_length", "must equal attention.key_length");
  DW_ASSIGN_OR_RETURN(const double epsilon,
                      format::metadata_float(c, p + "attention.layer_norm_rms_epsilon"));
  m.norm_epsilon = static_cast<float>(epsilon);
  const format::TensorInfo* embedding = c.find(embedding_name(c));
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return invalid_argument(c.path() + ": tensor " + embedding_name(c) + " is missing or no matrix");
  }
  m.vocab_size = embedding->shape[0];
  m.tied_head = c.find(head_name(c)) == nullptr;
  m.attention_bias = has_bias(c, m, 0, kQ);
  m.mlp_bias = has_bias(c, m, 0, kGate);
  DW_RETURN_IF_ERROR(configure_gguf_rope(c, &m));
  return m;
}

// Newer files keep everything in rope_parameters, older ones rope_theta at the top and the rest in
// rope_scaling.
Status configure_folder_rope(const Checkpoint& c, ModelConfig* m) {
  const bool newer = c.metadata("rope_parameters.rope_type") != nullptr ||
                     c.metadata("rope_parameters.rope_theta") != nullptr;
  const std::string p = newer ? "rope_parameters." : "rope_scaling.";
  const auto number = [&](const char* name, double otherwise) {
    return format::metadata_float_or(c, p + name).value_or(otherwise);
  };
  RopeParameters& rope = m->rope;
  rope.theta = number("rope_theta", format::metadata_float_or(c, "rope_theta").value_or(10000.0));
  const double part =
      number("partial_rotary_factor", format::metadata_float_or(c, "partial_rotary_factor").value_or(1.0));
  if (!(part > 0.0 && part <= 1.0))
    return bad_key(c, "partial_rotary_factor", "must be above 0 and at most 1");
  rope.dims = static_cast<int64_t>(static_cast<double>(m->head_dim) * part);
  std::string type = format::metadata_string_or(c, p + "rope_type").value_or("");
  if (type.empty()) type = format::metadata_string_or(c, p + "type").value_or("default");
  auto scaling = rope_scaling_from_name(type);
  if (!scaling.is_ok()) return scaling.status().with_context(c.path() + ": " + p + "rope_type");
  rope.scaling = *scaling;
  rope.original_context =
      format::metadata_int_or(c, p + "original_max_position_embeddings").value_or(m->context_length);
  const double stretched = static_cast<double>(m->context_length) /
                           static_cast<double>(std::max<int64_t>(1, rope.original_context));
  rope.factor = number("factor", rope.scaling == RopeScaling::kYarn ? stretched : 1.0);
  if (rope.scaling == RopeScaling::kDynamic) rope.original_context = m->context_length;
  rope.low_freq_factor = number("low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = number("high_freq_factor", rope.high_freq_factor);
  rope.beta_fast = number("beta_fast", rope.beta_fast);
  rope.beta_slow = number("beta_slow", rope.beta_slow);
  rope.attention_factor = number("attention_factor", 0.0);
  rope.mscale = number("mscale", 0.0);
  rope.mscale_all_dim = number("mscale_all_dim", 0.0);
  rope.truncate = format::metadata_bool_or(c, p + "truncate").value_or(true);
  return Status::ok();
}

Result<ModelConfig> configure_folder(const Checkpoint& c) {
  ModelConfig m;
  m.rope_style = RopeStyle::kHalf;
  DW_RETURN_IF_ERROR(check_kinds(c, "", kFolderOptional));
  DW_RETURN_IF_ERROR(check_kinds(c, "rope_parameters.", kFolderRope));
  DW_RETURN_IF_ERROR(check_kinds(c, "rope_scaling.", kFolderRope));
  DW_ASSIGN_OR_RETURN(m.vocab_size, dimension(c, "vocab_size"));
  DW_ASSIGN_OR_RETURN(m.layers, dimension(c, "num_hidden_layers"));
  DW_ASSIGN_OR_RETURN(m.context_length, dimension(c, "max_position_embeddings", 2048));
  DW_ASSIGN_OR_RETURN(m.width, dimension(c, "hidden_size"));
  DW_ASSIGN_OR_RETURN(m.feed_forward, dimension(c, "intermediate_size"));
  DW_ASSIGN_OR_RETURN(m.heads, dimension(c, "num_attention_heads"));
  DW_ASSIGN_OR_RETURN(m.kv_heads, dimension(c, "num_key_value_heads", m.heads));
  DW_ASSIGN_OR_RETURN(m.head_dim, dimension(c, "head_dim", m.width / m.heads));
  m.norm_epsilon = static_cast<float>(format::metadata_float_or(c, "rms_norm_eps").value_or(1e-6));
  const std::string activation = format::metadata_string_or(c, "hidden_act").value_or("silu");
  if (activation != "silu" && activation != "swish") {
    return unimplemented(c.path() + ": hidden_act \"" + activation + "\" is not supported (supported: silu)");
  }
  m.tied_head = format::metadata_bool_or(c, "tie_word_embeddings").value_or(false);
  m.attention_bias = format::metadata_bool_or(c, "attention_bias").value_or(false);
  m.mlp_bias = format::metadata_bool_or(c, "mlp_bias").value_or(false);
  DW_RETURN_IF_ERROR(configure_folder_rope(c, &m));
  return m;
}

Result<ModelConfig> configure(const Checkpoint& c) {
  auto config = is_gguf(c) ? configure_gguf(c) : configure_folder(c);
  if (!config.is_ok()) return config.status();
  ModelConfig m = std::move(*config);
  m.architecture = "llama";
  DW_RETURN_IF_ERROR(check_heads(c, m));
  m.rope_identity = identity(m.rope);
  return m;
}

// ---- tensors ----

Status check_tensor(const Checkpoint& c, const std::string& name, const std::vector<int64_t>& shape) {
  const auto text = [](const std::vector<int64_t>& dims) {
    std::string result = "[";
    for (size_t i = 0; i < dims.size(); ++i) result += (i ? ", " : "") + std::to_string(dims[i]);
    return result + "]";
  };
  const format::TensorInfo* tensor = c.find(name);
  if (tensor == nullptr) return invalid_argument(c.path() + ": tensor " + name + " is missing");
  if (tensor->shape != shape) {
    return invalid_argument(c.path() + ": tensor " + name + " has shape " + text(tensor->shape) +
                            ", the configuration asks for " + text(shape));
  }
  return Status::ok();
}

// Equal packed layout, so that one matrix can hold the rows of both.
bool same_layout(const format::TensorInfo& a, const format::TensorInfo& b) {
  return a.encoding == b.encoding && a.dtype == b.dtype && a.bits == b.bits && a.scale_dtype == b.scale_dtype;
}

// Matrices over the same input are joined by rows if nothing keeps them apart: layouts, biases, row groups.
bool joined(const Checkpoint& c, const ModelConfig& m, int64_t layer, const std::vector<Slot>& slots) {
  const format::TensorInfo* first = nullptr;
  for (Slot slot : slots) {
    const format::TensorInfo* tensor = c.find(tensor_of(c, layer, slot, ".weight"));
    if (tensor == nullptr || has_bias(c, m, layer, slot) || outputs_of(m, slot) % kRowGroup != 0)
      return false;
    if (first == nullptr) first = tensor;
    if (!same_layout(*first, *tensor)) return false;
  }
  return true;
}

struct Family {
  const char* key;  // of the joined matrix
  std::vector<Slot> slots;
};
const Family kQkv = {"attn_qkv", {kQ, kK, kV}};
const Family kGateUp = {"ffn_gate_up", {kGate, kUp}};

struct Requests {
  std::vector<format::MatrixRequest>* matrices;
  std::vector<format::VectorRequest>* vectors;
};

Status request_matrix(const Checkpoint& c, const ModelConfig& m, int64_t layer, Slot slot) {
  return check_tensor(c, tensor_of(c, layer, slot, ".weight"), {outputs_of(m, slot), inputs_of(m, slot)});
}

Status request_family(const Checkpoint& c, const ModelConfig& m, int64_t layer, const Family& family,
                      Requests out) {
  std::vector<std::string> tensors;
  for (Slot slot : family.slots) {
    DW_RETURN_IF_ERROR(request_matrix(c, m, layer, slot));
    tensors.push_back(tensor_of(c, layer, slot, ".weight"));
    if (!has_bias(c, m, layer, slot)) continue;
    const std::string bias = tensor_of(c, layer, slot, ".bias");
    DW_RETURN_IF_ERROR(check_tensor(c, bias, {outputs_of(m, slot)}));
    out.vectors->push_back({key_of(layer, kSlotNames[slot].gguf) + ".bias", bias});
  }
  if (family.slots.size() > 1 && joined(c, m, layer, family.slots)) {
    out.matrices->push_back({key_of(layer, family.key), std::move(tensors)});
    return Status::ok();
  }
  size_t i = 0;
  for (Slot slot : family.slots)
    out.matrices->push_back({key_of(layer, kSlotNames[slot].gguf), {tensors[i++]}});
  return Status::ok();
}

Status requests(const Checkpoint& c, const ModelConfig& m, std::vector<format::MatrixRequest>* matrices,
                std::vector<format::VectorRequest>* vectors) {
  const Requests out{matrices, vectors};
  DW_RETURN_IF_ERROR(check_tensor(c, embedding_name(c), {m.vocab_size, m.width}));
  matrices->push_back({"token_embd", {embedding_name(c)}});
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    for (Slot slot : {kAttnNorm, kFfnNorm}) {
      const std::string name = tensor_of(c, layer, slot, ".weight");
      DW_RETURN_IF_ERROR(check_tensor(c, name, {m.width}));
      vectors->push_back({key_of(layer, kSlotNames[slot].gguf), name});
    }
    DW_RETURN_IF_ERROR(request_family(c, m, layer, kQkv, out));
    DW_RETURN_IF_ERROR(request_family(c, m, layer, {"", {kO}}, out));
    DW_RETURN_IF_ERROR(request_family(c, m, layer, kGateUp, out));
    DW_RETURN_IF_ERROR(request_family(c, m, layer, {"", {kDown}}, out));
  }
  DW_RETURN_IF_ERROR(check_tensor(c, final_norm_name(c), {m.width}));
  vectors->push_back({"output_norm", final_norm_name(c)});
  if (m.tied_head) return Status::ok();
  DW_RETURN_IF_ERROR(check_tensor(c, head_name(c), {m.vocab_size, m.width}));
  matrices->push_back({"output", {head_name(c)}});
  return Status::ok();
}

// ---- graph ----

std::vector<graph::MatmulPart> parts_of(const Checkpoint& c, const ModelConfig& m, int64_t layer,
                                        const Family& family) {
  if (family.slots.size() > 1 && joined(c, m, layer, family.slots)) {
    int64_t rows = 0;
    for (Slot slot : family.slots) rows += outputs_of(m, slot);
    return {{key_of(layer, family.key), "", rows}};
  }
  std::vector<graph::MatmulPart> parts;
  for (Slot slot : family.slots) {
    const std::string key = key_of(layer, kSlotNames[slot].gguf);
    parts.push_back({key, has_bias(c, m, layer, slot) ? key + ".bias" : "", outputs_of(m, slot)});
  }
  return parts;
}

// 1 / sqrt(D), rounded once.
float attention_scale(int64_t head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

Result<graph::Graph> build(const Checkpoint& c, const ModelConfig& m) {
  graph::Builder b({m.layers, m.kv_heads, m.head_dim});
  const int64_t q_width = m.heads * m.head_dim;
  const int64_t kv_width = m.kv_heads * m.head_dim;
  const auto table = b.rope_table(m.rope.dims / 2, rope_frequencies(m.rope, m.context_length).scale);
  graph::BufferId x = b.embed("token_embd", m.width);
  graph::BufferId residual = graph::kNoBuffer;
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    const auto name = [&](const char* part) { return key_of(layer, part); };
    auto normed = b.rms_norm(x, residual, name("attn_norm"), m.norm_epsilon, name("attn_in"));
    graph::BufferId qkv = b.matmul(normed.out, parts_of(c, m, layer, kQkv), name("qkv"));
    qkv = b.rope(qkv, 0, m.heads + m.kv_heads, m.head_dim, m.rope_style, table, name("qkv_rotated"));
    b.kv_store(layer, {qkv, q_width, kv_width}, {qkv, q_width + kv_width, kv_width});
    const graph::BufferId attended =
        b.attention(layer, {qkv, 0, q_width}, m.heads, attention_scale(m.head_dim), 0, name("attended"));
    residual = b.matmul(attended, parts_of(c, m, layer, {"", {kO}}), name("attn_out"));
    normed = b.rms_norm(normed.sum, residual, name("ffn_norm"), m.norm_epsilon, name("ffn_in"));
    const graph::BufferId gate_up = b.matmul(normed.out, parts_of(c, m, layer, kGateUp), name("gate_up"));
    const graph::BufferId activated =
        b.swiglu({gate_up, 0, m.feed_forward}, {gate_up, m.feed_forward, m.feed_forward}, name("activated"));
    residual = b.matmul(activated, parts_of(c, m, layer, {"", {kDown}}), name("ffn_out"));
    x = normed.sum;
  }
  const auto last =
      b.rms_norm(b.add_rows(x, residual, "last"), graph::kNoBuffer, "output_norm", m.norm_epsilon, "final");
  const std::string head = m.tied_head ? "token_embd" : "output";
  return b.finish(b.matmul(last.out, {{head, "", m.vocab_size}}, "logits"));
}

}  // namespace

const Architecture& llama();

const Architecture& llama() {
  static const Architecture architecture{"llama", matches, configure, requests, build};
  return architecture;
}

}  // namespace driftwood::model
