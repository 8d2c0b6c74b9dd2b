#include "cli/model_locator.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace driftwood::cli {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string home_cache() {
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) return xdg;
  const std::string home = environment("HOME");
  return (home.empty() ? std::string("/tmp") : home) + "/.cache";
}

std::string hugging_face_hub() {
  if (const std::string hub = environment("HF_HUB_CACHE"); !hub.empty()) return hub;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/hub";
  return home_cache() + "/huggingface/hub";
}

int64_t size_of(const fs::path& path) {
  std::error_code ec;
  if (fs::is_regular_file(path, ec)) return static_cast<int64_t>(fs::file_size(path, ec));
  int64_t total = 0;
  for (fs::recursive_directory_iterator it(path, ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code file_error;
    if (it->is_regular_file(file_error)) total += static_cast<int64_t>(it->file_size(file_error));
  }
  return total;
}

void list_driftwood(std::vector<KnownModel>* out) {
  std::error_code ec;
  for (fs::directory_iterator it(cache_root() + "/models", ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().extension() != ".gguf" && !fs::exists(it->path() / "config.json", ec)) continue;
    out->push_back({it->path().stem().string(), it->path().string(), "driftwood cache", size_of(it->path())});
  }
}

// models--org--name/snapshots/REVISION: the newest revision that holds a config.json.
void list_hugging_face(std::vector<KnownModel>* out) {
  std::error_code ec;
  for (fs::directory_iterator it(hugging_face_hub(), ec), end; !ec && it != end; it.increment(ec)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with("models--")) continue;
    name = name.substr(8);
    if (const size_t dash = name.find("--"); dash != std::string::npos) name.replace(dash, 2, "/");
    fs::path best;
    fs::file_time_type best_time{};
    std::error_code inner;
    for (fs::directory_iterator rev(it->path() / "snapshots", inner), stop; !inner && rev != stop;
         rev.increment(inner)) {
      std::error_code file_error;
      if (!fs::exists(rev->path() / "config.json", file_error)) continue;
      const auto time = fs::last_write_time(rev->path(), file_error);
      if (best.empty() || time > best_time) {
        best = rev->path();
        best_time = time;
      }
    }
    if (!best.empty()) out->push_back({name, best.string(), "hugging face cache", size_of(best)});
  }
}

}  // namespace

std::string cache_root() {
  if (const std::string own = environment("DRIFTWOOD_CACHE"); !own.empty()) return own;
  return home_cache() + "/driftwood";
}

std::vector<KnownModel> list_models() {
  std::vector<KnownModel> models;
  list_driftwood(&models);
  list_hugging_face(&models);
  std::sort(models.begin(), models.end(),
            [](const KnownModel& a, const KnownModel& b) { return a.name < b.name; });
  return models;
}

Result<std::string> locate_model(const std::string& name) {
  if (name.empty()) return invalid_argument("--model is empty");
  std::error_code ec;
  if (fs::exists(name, ec)) return name;
  const std::vector<KnownModel> models = list_models();
  for (const KnownModel& model : models) {
    if (model.name == name) return model.path;
  }
  std::string known;
  for (const KnownModel& model : models) known += (known.empty() ? "" : ", ") + model.name;
  return not_found(
      "no model '" + name + "': not a path, and not among the known names (" +
      (known.empty() ? "none yet" : known) +
      "). `make run` fetches the default model smollm2-135m; `driftwood models` lists what there is");
}

}  // namespace driftwood::cli
