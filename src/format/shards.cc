#include "format/shards.h"

#include <filesystem>
#include <map>
#include <set>

#include "format/json_text.h"

namespace driftwood::format {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr size_t kIndexBytes = 256u << 20;
constexpr size_t kShards = 4096;

Status check_shard_name(const std::string& name, const std::string& place) {
  const bool bad = name.empty() || name.size() > 255 || name.front() == '.' ||
                   name.find_first_of(std::string("/\\\0", 3)) != std::string::npos ||
                   name.find("..") != std::string::npos;
  if (!bad) return Status::ok();
  return invalid_argument(place + ": names the shard '" + name.substr(0, 200) +
                          "'; a shard must be a plain file name in the same folder");
}

// Tensor names of each shard.
Result<std::map<std::string, std::set<std::string>>> read_index(const std::string& path) {
  DW_ASSIGN_OR_RETURN(const std::string text, os::read_text_file(path, kIndexBytes));
  DW_ASSIGN_OR_RETURN(const json index, parse_json(text, path));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty()) {
    return invalid_argument(path + ": must hold \"weight_map\", an object of tensor names to file names");
  }
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string())
      return invalid_argument(path + ": tensor '" + tensor + "' must map to a file name");
    DW_RETURN_IF_ERROR(check_shard_name(file.get<std::string>(), path));
    shards[file.get<std::string>()].insert(tensor);
  }
  if (shards.size() > kShards) {
    return invalid_argument(path + ": names " + std::to_string(shards.size()) + " shards, at most " +
                            std::to_string(kShards) + " are read");
  }
  return shards;
}

// What else lies in a folder without safetensors, for the message.
std::string folder_hint(const std::string& folder) {
  std::string pickle, gguf, safetensors;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::string ending = it->path().extension().string();
    if (ending == ".bin" || ending == ".pth" || ending == ".pt") pickle = name;
    if (ending == ".gguf") gguf = name;
    if (ending == ".safetensors") safetensors = name;
  }
  if (!gguf.empty()) return "it holds " + gguf + ": name that file instead";
  if (!safetensors.empty())
    return "it holds " + safetensors + ": name that file, or the folder of the whole model";
  if (!pickle.empty()) {
    return "it holds PyTorch's " + pickle +
           ", a pickle that can run code when loaded and is not read: convert it to safetensors, or take a "
           "safetensors or GGUF copy";
  }
  return "the download may be incomplete";
}

}  // namespace

Result<ShardSet> open_single_shard(const std::string& path) {
  ShardSet set;
  DW_ASSIGN_OR_RETURN(auto file, os::MappedFile::open(path));
  DW_ASSIGN_OR_RETURN(set.tensors, parse_safetensors(file->bytes(), path));
  set.files.push_back(std::move(file));
  return set;
}

Result<ShardSet> open_sharded(const std::string& folder, const std::string& index_file) {
  DW_ASSIGN_OR_RETURN(const auto shards, read_index(index_file));
  ShardSet set;
  for (const auto& [name, wanted] : shards) {
    const std::string path = folder + "/" + name;
    auto shard = open_single_shard(path);
    if (!shard.is_ok() && shard.status().code() == Code::kNotFound) {
      return not_found(path + ": " + index_file + " names this shard and it is missing: fetch it");
    }
    if (!shard.is_ok()) return shard.status();
    std::set<std::string> missing = wanted;
    for (StoredTensor& tensor : shard->tensors) {
      if (missing.erase(tensor.name) > 0) set.tensors.push_back(std::move(tensor));
    }
    if (!missing.empty()) {
      return data_loss(path + ": lacks tensor '" + *missing.begin() + "', which " + index_file +
                       " says it holds");
    }
    set.files.push_back(std::move(shard->files[0]));
  }
  return set;
}

Result<ShardSet> open_folder_weights(const std::string& folder) {
  std::error_code ignored;
  const std::string single = folder + "/model.safetensors";
  const std::string index = folder + "/model.safetensors.index.json";
  // A dangling link (an incomplete download cache) counts as there, so that the error names it.
  const auto present = [&](const std::string& path) { return fs::exists(fs::symlink_status(path, ignored)); };
  if (present(single)) return open_single_shard(single);
  if (present(index)) return open_sharded(folder, index);
  return not_found(
      folder + ": has neither model.safetensors nor model.safetensors.index.json: " + folder_hint(folder));
}

}  // namespace driftwood::format
