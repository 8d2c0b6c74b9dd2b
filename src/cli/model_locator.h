// Where models are: a path, a Hugging Face folder or cache name ("org/name"), or a short name
// ("smollm2-135m").
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace driftwood::cli {

// ${XDG_CACHE_HOME:-~/.cache}/driftwood, or DRIFTWOOD_CACHE.
std::string cache_root();

struct KnownModel {
  std::string name;  // what --model takes
  std::string path;
  std::string origin;      // "driftwood cache" or "hugging face cache"
  int64_t size_bytes = 0;  // of the files
};

// Models found on this machine, by name.
std::vector<KnownModel> list_models();

// not_found lists what there is and how to get the default model.
Result<std::string> locate_model(const std::string& name);

}  // namespace driftwood::cli
