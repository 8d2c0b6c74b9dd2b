#include "engine/engine.h"

#include <algorithm>

#include "engine/engine_impl.h"
#include "os/physical_memory.h"

namespace driftwood::engine {
namespace {

// Rows of logits one run can make; more are made in further runs.
constexpr int64_t kMaxLogitRows = 64;
constexpr int64_t kMaxBatchTokens = 65536;
constexpr int64_t kMaxContext = int64_t{1} << 30;

Status check_options(const LoadedModel& model, const device::Device& device, const EngineOptions& options) {
  if (options.max_batch_tokens < 1 || options.max_batch_tokens > kMaxBatchTokens) {
    return invalid_argument("max_batch_tokens is " + std::to_string(options.max_batch_tokens) +
                            ", expected 1 to " + std::to_string(kMaxBatchTokens));
  }
  if (options.kv_budget_bytes < 0) return invalid_argument("kv_budget_bytes must not be negative");
  const int64_t limit =
      model::depends_on_context(model.config.rope) ? kMaxContext : model.config.context_length;
  if (options.max_context < 0 || options.max_context > limit) {
    return invalid_argument("max_context is " + std::to_string(options.max_context) +
                            ", the model allows 1 to " + std::to_string(limit) + " tokens");
  }
  if (options.debug_f32_activations && device.info().isa != "ref") {
    return invalid_argument(
        "f32 activations are a debug path of the \"ref\" instruction set only, this device runs \"" +
        device.info().isa + "\"");
  }
  return Status::ok();
}

Result<int64_t> kv_budget(const EngineOptions& options) {
  if (options.kv_budget_bytes > 0) return options.kv_budget_bytes;
  DW_ASSIGN_OR_RETURN(const int64_t memory, os::physical_memory_bytes());
  return memory / 4;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<LoadedModel> model, device::Device* device,
                                               const EngineOptions& options) {
  DW_RETURN_IF_ERROR(check_options(*model, *device, options));
  DW_ASSIGN_OR_RETURN(const graph::Graph graph,
                      model->architecture->build(*model->checkpoint, model->config));
  DW_ASSIGN_OR_RETURN(const kv::KvLayout layout, kv::KvLayout::create(graph.kv.layers, graph.kv.kv_heads,
                                                                      graph.kv.head_dim, options.kv_dtype));
  DW_ASSIGN_OR_RETURN(const int64_t budget, kv_budget(options));
  // A device that has to register memory before it can use it must not find it remapped (DESIGN 4.1).
  const kv::FileUse file_use = device->info().pointers_are_host ? kv::FileUse::kMap : kv::FileUse::kRead;
  DW_ASSIGN_OR_RETURN(auto pool, kv::BlockPool::create(layout, budget, file_use));
  RunnerOptions limits;
  limits.max_tokens = options.max_batch_tokens;
  limits.max_logit_rows = std::min<int64_t>(options.max_batch_tokens, kMaxLogitRows);
  limits.f32_activations = options.debug_f32_activations;
  DW_ASSIGN_OR_RETURN(auto runner, GraphRunner::create(graph, model->weights.get(), device, pool->layout(),
                                                       pool->base(), limits));
  const int64_t context = options.max_context > 0 ? options.max_context : model->config.context_length;
  return std::unique_ptr<Engine>(
      new EngineImpl(std::move(model), device, context, std::move(pool), std::move(runner)));
}

EngineImpl::EngineImpl(std::shared_ptr<LoadedModel> model, device::Device* device, int64_t max_context,
                       std::unique_ptr<kv::BlockPool> pool, std::unique_ptr<GraphRunner> runner)
    : model_(std::move(model)),
      device_(device),
      max_context_(max_context),
      share_(std::make_shared<KvShare>(std::move(pool))),
      mutex_(share_->mutex),
      pool_(share_->pool.get()),
      runner_(std::move(runner)) {
  constexpr size_t kExpectedSessions = 64;
  queue_.reserve(kExpectedSessions);
  batch_.reserve(kExpectedSessions);
  candidates_.reserve(kExpectedSessions);
  pieces_.reserve(kExpectedSessions);
}

EngineImpl::~EngineImpl() {
  DW_CHECK(!leading_, "an engine goes only after every call to it has returned");
  std::lock_guard<std::mutex> lock(mutex_);  // frozen sessions may go at this moment
  for (auto& [id, session] : sessions_) session->table.clear(pool_);
}

Result<Session*> EngineImpl::idle(SessionId id) const {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return not_found("there is no session " + std::to_string(id));
  if (found->second->busy) {
    return failed_precondition("session " + std::to_string(id) + " is in use by another call");
  }
  return found->second.get();
}

std::shared_ptr<const std::vector<float>> EngineImpl::frequencies_for(int64_t max_tokens) {
  const model::RopeParameters& rope = model_->config.rope;
  auto& entry = frequencies_[model::depends_on_context(rope) ? max_tokens : 0];
  if (entry == nullptr) {
    entry = std::make_shared<const std::vector<float>>(model::rope_frequencies(rope, max_tokens).inv_freq);
  }
  return entry;
}

Result<SessionId> EngineImpl::open(const SessionOptions& options) {
  const int64_t most = options.max_tokens > 0 ? options.max_tokens : max_context_;
  if (options.max_tokens < 0 || most > max_context_) {
    return invalid_argument("max_tokens is " + std::to_string(options.max_tokens) +
                            ", the engine allows 1 to " + std::to_string(max_context_));
  }
  DW_RETURN_IF_ERROR(sampler::validate(options.sampling, model_->config.vocab_size));
  std::lock_guard<std::mutex> lock(mutex_);
  auto session = std::make_unique<Session>(next_id_, options, most);
  session->inv_freq = frequencies_for(most);
  sessions_.emplace(next_id_, std::move(session));
  return next_id_++;
}

Result<SessionId> EngineImpl::fork(SessionId id, uint64_t stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const parent, idle(id));
  SessionOptions options;
  options.sampling = parent->sampler.params();
  options.sampling.stream = forked_stream(options.sampling.stream, stream);
  auto child = std::make_unique<Session>(next_id_, options, parent->max_tokens);
  child->tokens.assign(parent->tokens.begin(), parent->tokens.end());
  child->computed = parent->computed;
  child->inv_freq = parent->inv_freq;
  child->logits = parent->logits;
  parent->own_logits = nullptr;
  child->has_logits = parent->has_logits;
  child->table.fork_from(pool_, parent->table, parent->computed);
  sessions_.emplace(next_id_, std::move(child));
  return next_id_++;
}

Status EngineImpl::close(SessionId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  session->table.clear(pool_);
  sessions_.erase(id);
  return Status::ok();
}

Status EngineImpl::append(SessionId id, std::span<const int32_t> ids) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  const int64_t vocab = model_->config.vocab_size;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab) continue;
    return invalid_argument("token " + std::to_string(i) + " has the id " + std::to_string(ids[i]) +
                            ", the vocabulary has " + std::to_string(vocab));
  }
  const int64_t room = session->max_tokens - session->length();
  if (static_cast<int64_t>(ids.size()) > room) {
    return out_of_range("session " + std::to_string(id) + " holds " + std::to_string(session->length()) +
                        " of at most " + std::to_string(session->max_tokens) + " tokens, " +
                        std::to_string(ids.size()) + " more do not fit");
  }
  session->tokens.insert(session->tokens.end(), ids.begin(), ids.end());
  return Status::ok();
}

Status EngineImpl::truncate(SessionId id, int64_t length) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  if (length < 0 || length > session->length()) {
    return invalid_argument("session " + std::to_string(id) + " has " + std::to_string(session->length()) +
                            " tokens, it can't be cut to " + std::to_string(length));
  }
  session->tokens.resize(static_cast<size_t>(length));
  session->computed = std::min(session->computed, length);
  session->table.truncate(pool_, session->computed);
  session->has_logits = false;
  return Status::ok();
}

Result<int64_t> EngineImpl::length(SessionId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  return session->length();
}

Result<int64_t> EngineImpl::computed(SessionId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  return session->computed;
}

Result<std::vector<int32_t>> EngineImpl::tokens(SessionId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  return session->tokens;
}

Result<int64_t> EngineImpl::rows_computed(SessionId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  return session->rows_computed;
}

Result<std::span<const float>> EngineImpl::logits(SessionId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  if (!session->has_logits || session->pending() > 0) {
    return failed_precondition("session " + std::to_string(id) +
                               " has no logits of its last token; step it first");
  }
  return std::span<const float>(*session->logits);
}

Result<int32_t> EngineImpl::sample(SessionId id, std::span<const uint64_t> allowed) {
  Session* session = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    DW_ASSIGN_OR_RETURN(session, idle(id));
    if (!session->has_logits || session->pending() > 0) {
      return failed_precondition("session " + std::to_string(id) +
                                 " has no logits of its last token; step it first");
    }
    session->busy = true;
  }
  Result<int32_t> token =
      session->sampler.sample(*session->logits, session->tokens, session->length(), allowed);
  std::lock_guard<std::mutex> lock(mutex_);
  session->busy = false;
  return token;
}

Status EngineImpl::set_sampling(SessionId id, const sampler::SamplerParams& params) {
  DW_RETURN_IF_ERROR(sampler::validate(params, model_->config.vocab_size));
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  session->sampler.set_params(params);
  return Status::ok();
}

Result<sampler::SamplerParams> EngineImpl::sampling(SessionId id) {
  std::lock_guard<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  return session->sampler.params();
}

EngineStats EngineImpl::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  EngineStats stats = stats_;
  stats.kv_blocks_in_use = pool_->in_use();
  stats.kv_blocks_mapped = pool_->mapped();
  stats.kv_block_bytes = pool_->layout().block_bytes();
  return stats;
}

}  // namespace driftwood::engine
