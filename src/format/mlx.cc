#include "format/mlx.h"

#include <map>

#include "format/checked_size.h"

namespace driftwood::format {
namespace {

using nlohmann::json;

struct Settings {
  int bits = 0;
  int group_size = 0;
  bool quantised = true;
};

Result<Settings> read_settings(const json& j, const std::string& place) {
  Settings s;
  const auto mode = j.find("mode");
  if (mode != j.end() && (!mode->is_string() || mode->get<std::string>() != "affine")) {
    const std::string text = mode->is_string() ? mode->get<std::string>().substr(0, 40) : "not a string";
    return unimplemented(place + ": quantisation mode '" + text + "' is not read; 'affine' is");
  }
  const auto bits = j.find("bits");
  const auto group = j.find("group_size");
  if (bits == j.end() || !bits->is_number_unsigned() || group == j.end() || !group->is_number_unsigned()) {
    return invalid_argument(place + ": must give \"bits\" and \"group_size\" as whole numbers");
  }
  const uint64_t b = bits->get<uint64_t>();
  const uint64_t g = group->get<uint64_t>();
  if (b != 4 && b != 8)
    return unimplemented(place + ": " + std::to_string(b) + " bits are not read; 4 and 8 are");
  if (g != 32 && g != 64 && g != 128) {
    return unimplemented(place + ": groups of " + std::to_string(g) + " are not read; 32, 64 and 128 are");
  }
  s.bits = static_cast<int>(b);
  s.group_size = static_cast<int>(g);
  return s;
}

Result<Settings> settings_of(const json& quantization, const std::string& module, const std::string& file) {
  const std::string place = file + ": \"quantization\" of '" + module + "'";
  const auto own = quantization.find(module);
  if (own == quantization.end()) return read_settings(quantization, file + ": \"quantization\"");
  if (own->is_boolean() && !own->get<bool>()) return Settings{0, 0, false};
  if (own->is_boolean()) return read_settings(quantization, place);
  if (!own->is_object()) return invalid_argument(place + ": must be an object or false");
  json merged = *own;
  for (const char* key : {"bits", "group_size", "mode"}) {
    if (!merged.contains(key) && quantization.contains(key)) merged[key] = quantization[key];
  }
  return read_settings(merged, place);
}

TensorInfo dense(const StoredTensor& stored) {
  TensorInfo t;
  t.name = stored.name;
  t.dtype = stored.dtype;
  t.shape = stored.shape;
  t.bytes = stored.bytes;
  return t;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// One quantised module, all three tensors at hand.
Result<TensorInfo> join_module(const StoredTensor& weight, const StoredTensor& scales,
                               const StoredTensor& biases, const Settings& s, const std::string& file) {
  const std::string place = file + ": tensor '" + weight.name + "'";
  if (weight.dtype != DType::kU32 || weight.shape.size() < 2) {
    return invalid_argument(place + ": has scales beside it but is " + std::string(dtype_name(weight.dtype)) +
                            " " + shape_text(weight.shape) +
                            "; quantised codes must be U32 of at least two dimensions");
  }
  const bool scale_type =
      scales.dtype == DType::kF16 || scales.dtype == DType::kBF16 || scales.dtype == DType::kF32;
  if (!scale_type || scales.dtype != biases.dtype) {
    return invalid_argument(place + ": its scales are " + std::string(dtype_name(scales.dtype)) +
                            " and its biases " + std::string(dtype_name(biases.dtype)) +
                            "; both must be the same of F16, BF16 and F32");
  }
  TensorInfo t = dense(weight);
  t.encoding = Encoding::kMlxAffine;
  t.bits = s.bits;
  t.group_size = s.group_size;
  t.scale_dtype = scales.dtype;
  t.scales = scales.bytes;
  t.biases = biases.bytes;
  if (!multiply(t.shape.back(), 32 / s.bits, &t.shape.back())) {
    return invalid_argument(place + ": its rows are too long");
  }
  std::vector<int64_t> want = t.shape;
  want.back() /= s.group_size;
  if (t.shape.back() % s.group_size != 0 || scales.shape != want || biases.shape != want) {
    return invalid_argument(place + ": is " + shape_text(weight.shape) + " with scales " +
                            shape_text(scales.shape) + " and biases " + shape_text(biases.shape) + "; " +
                            std::to_string(s.bits) + " bits in groups of " + std::to_string(s.group_size) +
                            " need " + shape_text(want) + " for both");
  }
  return t;
}

bool take_suffix(const std::string& name, std::string_view suffix, std::string* module) {
  if (!name.ends_with(suffix)) return false;
  *module = name.substr(0, name.size() - suffix.size());
  return true;
}

}  // namespace

bool is_mlx_config(const json& config) { return config.contains("quantization"); }

Status check_quantisation(const json& config, const std::string& config_file) {
  if (is_mlx_config(config)) {
    const json& q = config["quantization"];
    if (!q.is_object()) return invalid_argument(config_file + ": \"quantization\" must be an object");
    return read_settings(q, config_file + ": \"quantization\"").status();
  }
  const auto other = config.find("quantization_config");
  if (other == config.end() || other->is_null()) return Status::ok();
  std::string method = "of unknown method";
  if (other->is_object() && other->contains("quant_method") && (*other)["quant_method"].is_string()) {
    method = "by '" + (*other)["quant_method"].get<std::string>().substr(0, 60) + "'";
  }
  return unimplemented(config_file + ": the model is quantised " + method +
                       ", which is not read; unquantised safetensors, MLX affine (4 or 8 bits) and GGUF are");
}

Result<std::vector<TensorInfo>> join_mlx(const std::vector<StoredTensor>& stored, const json& config,
                                         const std::string& file) {
  std::map<std::string, const StoredTensor*> by_name;
  for (const StoredTensor& s : stored) by_name.emplace(s.name, &s);
  const auto find = [&](const std::string& name) {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  };
  std::vector<TensorInfo> tensors;
  for (const StoredTensor& s : stored) {
    std::string module;
    const bool side = take_suffix(s.name, ".scales", &module) || take_suffix(s.name, ".biases", &module);
    if (side) {
      if (find(module + ".weight") != nullptr && find(module + ".scales") != nullptr)
        continue;  // joined below
      return invalid_argument(file + ": tensor '" + s.name + "' lacks its '" + module +
                              (s.name.ends_with(".scales") ? ".weight'" : ".scales'"));
    }
    const bool weight = take_suffix(s.name, ".weight", &module);
    const StoredTensor* scales = weight ? find(module + ".scales") : nullptr;
    if (scales == nullptr) {
      if (weight && s.dtype == DType::kU32) {
        return invalid_argument(file + ": tensor '" + s.name + "' holds U32 codes but has no '" + module +
                                ".scales'");
      }
      tensors.push_back(dense(s));
      continue;
    }
    const StoredTensor* biases = find(module + ".biases");
    if (biases == nullptr) {
      return invalid_argument(file + ": tensor '" + s.name + "' has scales but no '" + module + ".biases'");
    }
    DW_ASSIGN_OR_RETURN(const Settings settings, settings_of(config["quantization"], module, file));
    if (!settings.quantised) {
      return invalid_argument(file + ": config.json says '" + module +
                              "' is not quantised, yet it has scales");
    }
    DW_ASSIGN_OR_RETURN(TensorInfo joined, join_module(s, *scales, *biases, settings, file));
    tensors.push_back(std::move(joined));
  }
  return tensors;
}

std::vector<TensorInfo> dense_tensors(const std::vector<StoredTensor>& stored) {
  std::vector<TensorInfo> tensors;
  for (const StoredTensor& s : stored) tensors.push_back(dense(s));
  return tensors;
}

}  // namespace driftwood::format
