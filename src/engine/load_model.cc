#include <chrono>
#include <functional>
#include <future>
#include <utility>

#include "engine/loaded_model.h"

namespace driftwood::engine {
namespace {

// Token ids need no text, so a model whose tokenizer or template is absent or not supported is still a model;
// why it has none is kept for those who ask for text.
template <typename T>
std::shared_ptr<const T> if_usable(Result<std::shared_ptr<const T>> loaded, Status* why) {
  if (loaded.is_ok()) return *loaded;
  *why = loaded.status();
  return nullptr;
}

// Everything about text. Building a vocabulary takes as long as mapping the weights: the two go side by side.
struct Text {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<const text::ChatTemplate> chat_template;
  Status tokenizer_status;
  Status template_status;
};

Text load_text(const format::Checkpoint& checkpoint) {
  Text text;
  text.tokenizer = if_usable(text::Tokenizer::from_checkpoint(checkpoint), &text.tokenizer_status);
  text.chat_template = if_usable(text::ChatTemplate::from_checkpoint(checkpoint), &text.template_status);
  return text;
}

}  // namespace

Result<std::shared_ptr<LoadedModel>> load_model(const std::string& path, const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  auto model = std::make_shared<LoadedModel>();
  DW_ASSIGN_OR_RETURN(model->checkpoint, format::open_checkpoint(path));
  const format::Checkpoint& checkpoint = *model->checkpoint;
  DW_ASSIGN_OR_RETURN(model->architecture, model::find_architecture(checkpoint));
  DW_ASSIGN_OR_RETURN(model->config, model->architecture->configure(checkpoint));

  std::vector<format::MatrixRequest> matrices;
  std::vector<format::VectorRequest> vectors;
  DW_RETURN_IF_ERROR(model->architecture->requests(checkpoint, model->config, &matrices, &vectors));
  // Its destructor waits, so that an error below leaves nothing running.
  std::future<Text> text = std::async(std::launch::async, load_text, std::cref(checkpoint));
  weights::SourceOptions source;
  source.verify_cache = options.verify_cache;
  source.cache_dir = options.cache_dir;
  source.threads = options.threads;
  source.memory_bytes = options.weights_memory_bytes;
  DW_ASSIGN_OR_RETURN(model->weights, weights::open_weights(model->checkpoint, std::move(matrices),
                                                            std::move(vectors), source));

  model->fingerprint_hex = checkpoint.fingerprint_hex();
  Text read = text.get();
  model->tokenizer = std::move(read.tokenizer);
  model->chat_template = std::move(read.chat_template);
  model->tokenizer_status = std::move(read.tokenizer_status);
  model->template_status = std::move(read.template_status);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  model->load_ms = took.count();
  return model;
}

}  // namespace driftwood::engine
