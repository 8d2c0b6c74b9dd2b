// FakeEngine: an engine without a model, for tests of everything around it. The token at a position is a hash
// of all tokens before it and the sampler's seed and stream, so that any mix-up of sessions changes the
// output.
#pragma once

#include <map>
#include <mutex>

#include "base/rng.h"
#include "engine/engine.h"

namespace driftwood::actor {

class FakeEngine final : public engine::Engine {
 public:
  static constexpr int64_t kVocabulary = 100;
  static constexpr int64_t kContext = 64;

  FakeEngine() { model_.config.vocab_size = kVocabulary; }
  const engine::LoadedModel& model() const override { return model_; }
  device::Device& device() override { return *static_cast<device::Device*>(nullptr); }

  Result<engine::SessionId> open(const engine::SessionOptions& options) override {
    const std::lock_guard lock(mutex_);
    sessions_[++last_].sampling = options.sampling;
    return last_;
  }
  Result<engine::SessionId> fork(engine::SessionId id, uint64_t stream) override {
    const std::lock_guard lock(mutex_);
    sessions_[++last_] = sessions_.at(id);
    if (stream != 0) sessions_[last_].sampling.stream = stream;
    return last_;
  }
  Status close(engine::SessionId id) override {
    const std::lock_guard lock(mutex_);
    return sessions_.erase(id) == 1 ? Status::ok() : not_found("no session");
  }
  Status append(engine::SessionId id, std::span<const int32_t> ids) override {
    const std::lock_guard lock(mutex_);
    Session& s = sessions_.at(id);
    for (const int32_t token : ids) {
      if (token < 0 || token >= kVocabulary) return invalid_argument("token outside the vocabulary");
    }
    if (static_cast<int64_t>(s.tokens.size() + ids.size()) > kContext) return out_of_range("session full");
    s.tokens.insert(s.tokens.end(), ids.begin(), ids.end());
    return Status::ok();
  }
  Status truncate(engine::SessionId id, int64_t length) override {
    const std::lock_guard lock(mutex_);
    Session& s = sessions_.at(id);
    if (length < 0 || length > static_cast<int64_t>(s.tokens.size()))
      return out_of_range("beyond the session");
    s.tokens.resize(static_cast<size_t>(length));
    s.row.clear();
    s.computed = std::min(s.computed, length);
    return Status::ok();
  }
  Result<int64_t> length(engine::SessionId id) override {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(sessions_.at(id).tokens.size());
  }
  Result<int64_t> computed(engine::SessionId id) override {
    const std::lock_guard lock(mutex_);
    return sessions_.at(id).computed;
  }
  Result<std::vector<int32_t>> tokens(engine::SessionId id) override {
    const std::lock_guard lock(mutex_);
    return sessions_.at(id).tokens;
  }
  Status step(engine::SessionId id, const engine::LogitsSink* = nullptr) override {
    const std::lock_guard lock(mutex_);
    Session& s = sessions_.at(id);
    const auto length = static_cast<int64_t>(s.tokens.size());
    if (s.computed == length && s.row.empty()) return failed_precondition("nothing to compute");
    s.computed = length;
    s.row.assign(kVocabulary, 0.0f);
    uint64_t state = 1;
    for (const int32_t token : s.tokens) state = random_u64(state, static_cast<uint64_t>(token), 0, 0);
    for (uint32_t i = 0; i < kVocabulary; ++i) s.row[i] = random_uniform(state, 0, i, 0);
    return Status::ok();
  }
  Result<std::span<const float>> logits(engine::SessionId id) override {
    const std::lock_guard lock(mutex_);
    const Session& s = sessions_.at(id);
    if (s.row.empty()) return failed_precondition("step first");
    return std::span<const float>(s.row);
  }
  Result<int32_t> sample(engine::SessionId id, std::span<const uint64_t> allowed = {}) override {
    const std::lock_guard lock(mutex_);
    const Session& s = sessions_.at(id);
    if (s.row.empty()) return failed_precondition("step first");
    int32_t best = -1;
    float best_value = -1;
    for (int32_t i = 0; i < kVocabulary; ++i) {
      const auto word = static_cast<size_t>(i / 64);
      if (!allowed.empty() && ((allowed[word] >> (i % 64)) & 1) == 0) continue;
      const auto at = static_cast<uint64_t>(i);
      const float value =
          s.row[static_cast<size_t>(i)] * random_uniform(s.sampling.seed, s.sampling.stream, at, 0);
      if (value > best_value) best = i, best_value = value;
    }
    if (best < 0) return failed_precondition("the mask allows no token");
    return best;
  }
  Status set_sampling(engine::SessionId id, const sampler::SamplerParams& params) override {
    const std::lock_guard lock(mutex_);
    sessions_.at(id).sampling = params;
    return Status::ok();
  }
  Result<sampler::SamplerParams> sampling(engine::SessionId id) override {
    const std::lock_guard lock(mutex_);
    return sessions_.at(id).sampling;
  }
  Result<int64_t> rows_computed(engine::SessionId id) override {
    const std::lock_guard lock(mutex_);
    return sessions_.at(id).computed;
  }
  engine::SessionIdentity identity(int64_t) const override { return {}; }
  Result<engine::FrozenSession> freeze(engine::SessionId) override {
    return unimplemented("this engine freezes no sessions");
  }
  Result<engine::SessionId> thaw(const engine::FrozenSession&) override {
    return unimplemented("this engine thaws no sessions");
  }
  engine::EngineStats stats() const override { return {}; }
  int64_t max_context() const override { return kContext; }
  size_t open_sessions() const {
    const std::lock_guard lock(mutex_);
    return sessions_.size();
  }

 private:
  struct Session {
    std::vector<int32_t> tokens;
    std::vector<float> row;
    int64_t computed = 0;
    sampler::SamplerParams sampling;
  };
  engine::LoadedModel model_;
  mutable std::mutex mutex_;
  engine::SessionId last_ = 0;
  std::map<engine::SessionId, Session> sessions_;
};

}  // namespace driftwood::actor
