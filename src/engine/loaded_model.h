// LoadedModel: one opened model, ready for engines: checkpoint, configuration, packed weights, text.
// Immutable after load and shared; outlives every engine built on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "format/checkpoint.h"
#include "model/model.h"
#include "text/tokenizer.h"
#include "weights/weight_source.h"

namespace driftwood::engine {

struct LoadOptions {
  std::string cache_dir;  // packed-weight cache; empty: none
  int threads = 1;
  bool verify_cache = false;         // compare the packed cache with its checksums, not only with its stamp
  int64_t weights_memory_bytes = 0;  // of weights to hold in memory; 0: what the system can spare
};

struct LoadedModel {
  std::shared_ptr<const format::Checkpoint> checkpoint;
  const model::Architecture* architecture = nullptr;
  model::ModelConfig config;
  std::unique_ptr<weights::WeightSource> weights;
  std::shared_ptr<const text::Tokenizer> tokenizer;         // null: the checkpoint carries none
  std::shared_ptr<const text::ChatTemplate> chat_template;  // null likewise
  Status tokenizer_status;                                  // why there is no tokenizer
  Status template_status;                                   // why there is no template
  std::string fingerprint_hex;
  double load_ms = 0;
};

// path: a GGUF file or a model folder. Errors name the file and what is unsupported or broken.
Result<std::shared_ptr<LoadedModel>> load_model(const std::string& path, const LoadOptions& options);

}  // namespace driftwood::engine
