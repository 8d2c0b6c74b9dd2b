#include "format/folder.h"

#include <filesystem>
#include <mutex>
#include <unordered_map>

#include "format/file_stamp_text.h"
#include "format/fingerprint.h"
#include "format/gguf.h"
#include "format/json_text.h"
#include "format/looks_like.h"
#include "format/mlx.h"
#include "format/shards.h"

namespace driftwood::format {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr size_t kConfigBytes = 16u << 20;
constexpr size_t kSideFileBytes = 512u << 20;

class FolderCheckpoint final : public Checkpoint {
 public:
  FolderCheckpoint(std::string path, std::string folder, FileFormat format, std::string config_text,
                   const json& config, ShardSet shards, std::vector<TensorInfo> tensors)
      : path_(std::move(path)),
        folder_(std::move(folder)),
        format_(format),
        config_text_(std::move(config_text)),
        metadata_(flatten_json(config)),
        files_(std::move(shards.files)),
        tensors_(std::move(tensors)) {
    for (const TensorInfo& t : tensors_) {
      by_name_.emplace(t.name, &t);
      total_bytes_ += static_cast<int64_t>(t.bytes.size() + t.scales.size() + t.biases.size());
    }
  }

  FileFormat format() const override { return format_; }
  const std::string& path() const override { return path_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  int64_t total_tensor_bytes() const override { return total_bytes_; }

  const TensorInfo* find(const std::string& name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  const MetadataValue* metadata(const std::string& key) const override {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? nullptr : &found->second;
  }

  Result<std::string> side_file(const std::string& name) const override {
    if (name.empty() || name.find('/') != std::string::npos || name.find("..") != std::string::npos) {
      return invalid_argument(path_ + ": '" + name + "' is not a plain file name");
    }
    return os::read_text_file(folder_ + "/" + name, kSideFileBytes);
  }

  std::string fingerprint_hex() const override {
    std::call_once(fingerprint_once_, [this] {
      const auto bytes = [](const std::string& text) {
        return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
      };
      std::vector<FingerprintText> texts = {{"config.json", bytes(config_text_)}};
      const auto tokenizer = os::MappedFile::open(folder_ + "/tokenizer.json");
      if (tokenizer.is_ok()) texts.push_back({"tokenizer.json", (*tokenizer)->bytes()});
      fingerprint_ = fingerprint(format_, texts, tensors_);
    });
    return fingerprint_;
  }

  std::string file_stamp() const override {
    std::string text;
    for (const auto& file : files_) text += file_stamp_text(file->stamp());
    return text;
  }

  void drop_pages(const TensorInfo& tensor) const override {
    for (const std::span<const uint8_t> range : {tensor.bytes, tensor.scales, tensor.biases}) {
      for (const auto& file : files_) {
        const auto whole = file->bytes();
        const bool inside = !range.empty() && range.data() >= whole.data() &&
                            range.data() + range.size() <= whole.data() + whole.size();
        if (inside) file->drop_pages(range);
      }
    }
  }

 private:
  std::string path_;
  std::string folder_;
  FileFormat format_;
  std::string config_text_;
  std::map<std::string, MetadataValue> metadata_;
  std::vector<std::shared_ptr<const os::MappedFile>> files_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, const TensorInfo*> by_name_;
  int64_t total_bytes_ = 0;
  mutable std::once_flag fingerprint_once_;
  mutable std::string fingerprint_;
};

// The only .gguf file of a folder, or an empty path.
std::string only_gguf(const std::string& folder) {
  std::string found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".gguf") continue;
    if (!found.empty()) return "";
    found = it->path().string();
  }
  return found;
}

Result<json> read_config(const std::string& folder, std::string* text) {
  const std::string path = folder + "/config.json";
  DW_ASSIGN_OR_RETURN(*text, os::read_text_file(path, kConfigBytes));
  auto config = parse_json(*text, path);
  if (!config.is_ok()) {
    const std::span bytes(reinterpret_cast<const uint8_t*>(text->data()), text->size());
    const bool json_like = text->find_first_not_of(" \t\r\n") != std::string::npos &&
                           (*text)[text->find_first_not_of(" \t\r\n")] == '{';
    if (json_like) return config.status();
    return invalid_argument(path + ": not a model's configuration: " + looks_like(bytes));
  }
  if (!config->is_object()) return invalid_argument(path + ": must be a JSON object");
  DW_RETURN_IF_ERROR(check_quantisation(*config, path));
  return config;
}

// `weights` opens the safetensors files once the configuration is known to be good.
template <typename OpenWeights>
Result<std::shared_ptr<const Checkpoint>> open_with(const std::string& path, const std::string& folder,
                                                    const OpenWeights& open_weights) {
  std::string text;
  DW_ASSIGN_OR_RETURN(const json config, read_config(folder, &text));
  DW_ASSIGN_OR_RETURN(ShardSet shards, open_weights());
  const bool mlx = is_mlx_config(config);
  std::vector<TensorInfo> tensors;
  if (mlx) {
    DW_ASSIGN_OR_RETURN(tensors, join_mlx(shards.tensors, config, path));
  } else {
    tensors = dense_tensors(shards.tensors);
  }
  return std::shared_ptr<const Checkpoint>(
      std::make_shared<FolderCheckpoint>(path, folder, mlx ? FileFormat::kMlx : FileFormat::kHuggingFace,
                                         std::move(text), config, std::move(shards), std::move(tensors)));
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_folder(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path + "/config.json", ignored))) {
    const std::string gguf = only_gguf(path);
    if (!gguf.empty()) {
      DW_ASSIGN_OR_RETURN(auto file, os::MappedFile::open(gguf));
      return open_gguf(std::move(file));
    }
    std::string hint =
        ": the folder has no config.json, so it is not a model folder; name one, or a GGUF file";
    if (fs::is_directory(path + "/snapshots", ignored)) {
      hint = ": this is an entry of a download cache; name one of the folders in " + path + "/snapshots";
    }
    return not_found(path + hint);
  }
  return open_with(path, path, [&] { return open_folder_weights(path); });
}

Result<std::shared_ptr<const Checkpoint>> open_folder_file(const std::string& file) {
  const size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : file.substr(0, slash);
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder + "/config.json", ignored))) {
    return not_found(file + ": a safetensors file needs config.json beside it, and " + folder + " has none");
  }
  return open_with(file, folder, [&] { return open_single_shard(file); });
}

}  // namespace driftwood::format
