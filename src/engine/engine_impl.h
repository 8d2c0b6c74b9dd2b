// The engine behind engine.h: session calls in engine.cc, batching in scheduler.cc.
//
// One mutex guards everything but these, which need no lock because one thread alone can reach them:
//   - a session marked busy belongs to the thread that marked it: tokens, sampler, logits. While that thread
//   waits
//     in step(), they belong to the leader; the hand-over is the queue, under the mutex.
//   - the runner and the scratch vectors below it belong to the leader. There is at most one (`leading_`);
//   the role
//     passes under the mutex, from a leader that is done to the first session in the queue.
//   - KV blocks are written by the leader only, and only blocks with one reference (kv/block_table.h);
//     thaw() writes the blocks of a session that is not in the table yet.
// The mutex lies beside the pool, in what frozen sessions share with the engine (kv_share.h).
// The mutex is never held while the graph runs, a sink is called or a token is drawn.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/batch.h"
#include "engine/engine.h"
#include "engine/graph_runner.h"
#include "engine/kv_share.h"
#include "engine/session.h"
#include "kv/block_pool.h"

namespace driftwood::engine {

class EngineImpl final : public Engine {
 public:
  EngineImpl(std::shared_ptr<LoadedModel> model, device::Device* device, int64_t max_context,
             std::unique_ptr<kv::BlockPool> pool, std::unique_ptr<GraphRunner> runner);
  ~EngineImpl() override;

  const LoadedModel& model() const override { return *model_; }
  device::Device& device() override { return *device_; }
  int64_t max_context() const override { return max_context_; }

  Result<SessionId> open(const SessionOptions& options) override;
  Result<SessionId> fork(SessionId session, uint64_t stream) override;
  Status close(SessionId session) override;
  Status append(SessionId session, std::span<const int32_t> ids) override;
  Status truncate(SessionId session, int64_t length) override;
  Result<int64_t> length(SessionId session) override;
  Result<int64_t> computed(SessionId session) override;
  Result<std::vector<int32_t>> tokens(SessionId session) override;
  Result<int64_t> rows_computed(SessionId session) override;
  Status step(SessionId session, const LogitsSink* all_rows) override;
  Result<std::span<const float>> logits(SessionId session) override;
  Result<int32_t> sample(SessionId session, std::span<const uint64_t> allowed) override;
  Status set_sampling(SessionId session, const sampler::SamplerParams& params) override;
  Result<sampler::SamplerParams> sampling(SessionId session) override;
  SessionIdentity identity(int64_t max_tokens) const override;
  Result<FrozenSession> freeze(SessionId session) override;
  Result<SessionId> thaw(const FrozenSession& frozen) override;
  EngineStats stats() const override;

 private:
  // The session, if it exists and no call is using it. Under the mutex.
  Result<Session*> idle(SessionId id) const;
  std::shared_ptr<const std::vector<float>> frequencies_for(int64_t max_tokens);

  // freeze.cc.
  Status check_arithmetic() const;
  void copy_tail(const Session& session, KvPin* pin) const;
  Status load_kv(const FrozenSession& frozen, const Session& session);

  // scheduler.cc. `lock` holds mutex_.
  Status enter(Session* session, const LogitsSink* sink);
  void lead(std::unique_lock<std::mutex>* lock, Session* me);
  void wait_for_companions(std::unique_lock<std::mutex>* lock);
  void compose();
  Status run_batch();
  void fill_inputs();
  Session* logits_owner() const;
  void deliver(const float* logits);
  void settle(const Status& status, const Session* me);
  void finish(Session* session, Status outcome, const Session* me);

  const std::shared_ptr<LoadedModel> model_;
  device::Device* const device_;
  const int64_t max_context_;

  const std::shared_ptr<KvShare> share_;
  std::mutex& mutex_;
  kv::BlockPool* const pool_;
  std::unordered_map<SessionId, std::unique_ptr<Session>> sessions_;
  std::unordered_map<int64_t, std::shared_ptr<const std::vector<float>>> frequencies_;  // by context
  SessionId next_id_ = 1;
  EngineStats stats_;

  std::vector<Session*> queue_;  // waiting in step(), in order of arrival
  bool leading_ = false;
  size_t companions_ = 0;  // sessions of the last batch
  std::condition_variable arrival_;

  // The leader's.
  std::unique_ptr<GraphRunner> runner_;
  std::vector<Session*> batch_;  // the queue as composed
  std::vector<Candidate> candidates_;
  std::vector<Piece> pieces_;
  int64_t batch_tokens_ = 0;
  int64_t batch_logit_rows_ = 0;
};

}  // namespace driftwood::engine
