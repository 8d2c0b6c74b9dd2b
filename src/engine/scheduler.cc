// step(): callers that arrive together form one batch. One of them leads; the others sleep until their
// session is done or the lead is theirs. See engine_impl.h for who owns what.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/engine_impl.h"

namespace driftwood::engine {
namespace {

// How long a leader waits for the sessions of the last batch to come back (they are drawing a token). Much
// less than a run takes, so that a session which stays away costs little, once.
constexpr std::chrono::microseconds kCompanionWait{200};

}  // namespace

Status EngineImpl::step(SessionId id, const LogitsSink* all_rows) {
  std::unique_lock<std::mutex> lock(mutex_);
  DW_ASSIGN_OR_RETURN(Session* const session, idle(id));
  if (session->pending() == 0) {
    if (session->has_logits) return Status::ok();
    return failed_precondition("session " + std::to_string(id) +
                               " has no token to compute; append some first");
  }
  DW_RETURN_IF_ERROR(enter(session, all_rows));
  if (!leading_) {
    leading_ = true;
    session->lead = true;
  } else {
    arrival_.notify_one();
    session->wake.wait(lock, [&] { return session->done || session->lead; });
  }
  if (session->lead) lead(&lock, session);
  session->lead = false;
  session->busy = false;
  session->sink = nullptr;
  return std::move(session->outcome);
}

// Everything that can fail for lack of memory happens here, before the session is queued.
Status EngineImpl::enter(Session* session, const LogitsSink* sink) {
  DW_RETURN_IF_ERROR(session->table.prepare(pool_, session->computed, session->length())
                         .with_context("session " + std::to_string(session->id)));
  if (session->own_logits == nullptr) {
    auto row = std::make_shared<std::vector<float>>(static_cast<size_t>(runner_->vocab_size()));
    session->own_logits = row->data();
    session->logits = std::move(row);
    session->has_logits = false;
  }
  session->busy = true;
  session->sink = sink;
  session->computed_before = session->computed;
  session->done = false;
  session->lead = false;
  queue_.push_back(session);
  return Status::ok();
}

void EngineImpl::lead(std::unique_lock<std::mutex>* lock, Session* me) {
  while (!me->done) {
    wait_for_companions(lock);
    compose();
    lock->unlock();
    const Status status = run_batch();
    lock->lock();
    settle(status, me);
  }
  if (queue_.empty()) {
    leading_ = false;
    return;
  }
  queue_.front()->lead = true;
  queue_.front()->wake.notify_one();
}

void EngineImpl::wait_for_companions(std::unique_lock<std::mutex>* lock) {
  const size_t expected = std::min(companions_, sessions_.size());
  if (queue_.size() >= expected) return;
  arrival_.wait_for(*lock, kCompanionWait, [&] { return queue_.size() >= expected; });
}

void EngineImpl::compose() {
  candidates_.clear();
  for (const Session* session : queue_) candidates_.push_back({session->pending(), session->sink != nullptr});
  compose_batch(candidates_, runner_->options().max_tokens, runner_->options().max_logit_rows, &pieces_);
  batch_ = queue_;
  companions_ = pieces_.size();
}

// A single row of logits is computed where its session keeps it, several are copied there.
Status EngineImpl::run_batch() {
  fill_inputs();
  float* const direct = batch_logit_rows_ == 1 ? logits_owner()->own_logits : nullptr;
  DW_RETURN_IF_ERROR(runner_->run(batch_tokens_, batch_logit_rows_, direct));
  deliver(direct != nullptr ? direct : runner_->arena_logits());
  return Status::ok();
}

// The session of the batch's first row of logits.
Session* EngineImpl::logits_owner() const {
  for (const Piece& piece : pieces_) {
    if (piece.logit_rows > 0) return batch_[piece.candidate];
  }
  return nullptr;
}

void EngineImpl::fill_inputs() {
  int32_t row = 0;
  int32_t logit_row = 0;
  runner_->frequencies().clear();
  for (const Piece& piece : pieces_) {
    const Session& session = *batch_[piece.candidate];
    std::vector<FrequencyRun>& runs = runner_->frequencies();
    if (runs.empty() || runs.back().inv_freq != session.inv_freq->data()) {
      runs.push_back({row, 0, session.inv_freq->data()});
    }
    runs.back().count += piece.tokens;
    for (int64_t i = 0; i < piece.tokens; ++i, ++row) {
      const auto position = static_cast<int32_t>(session.computed + i);
      runner_->ids()[row] = session.tokens[static_cast<size_t>(position)];
      runner_->positions()[row] = position;
      runner_->kv_rows()[row] = {session.table.ids(), position};
      if (i >= piece.tokens - piece.logit_rows) runner_->logit_rows()[logit_row++] = row;
    }
  }
  batch_tokens_ = row;
  batch_logit_rows_ = logit_row;
}

// Logits to their sessions: the last row is kept, and every row goes to the sink if there is one.
void EngineImpl::deliver(const float* row) {
  const auto width = static_cast<size_t>(runner_->vocab_size());
  for (const Piece& piece : pieces_) {
    Session& session = *batch_[piece.candidate];
    if (piece.logit_rows == 0) continue;
    if (session.sink != nullptr) {
      const int64_t first = session.computed + piece.tokens - piece.logit_rows;
      for (int64_t r = 0; r < piece.logit_rows; ++r) {
        (*session.sink)(first + r, {row + static_cast<size_t>(r) * width, width});
      }
    }
    row += static_cast<size_t>(piece.logit_rows) * width;
    if (row - width == session.own_logits) continue;
    std::memcpy(session.own_logits, row - width, width * sizeof(float));
  }
}

void EngineImpl::settle(const Status& status, const Session* me) {
  if (status.is_ok()) {
    ++stats_.graph_runs;
    stats_.rows_computed += batch_tokens_;
    stats_.rows_for_logits += batch_logit_rows_;
  }
  for (const Piece& piece : pieces_) {
    Session* const session = batch_[piece.candidate];
    if (!status.is_ok()) {
      finish(session, status, me);
      continue;
    }
    session->computed += piece.tokens;
    session->rows_computed += piece.tokens;
    if (session->pending() == 0) finish(session, Status::ok(), me);
  }
}

void EngineImpl::finish(Session* session, Status outcome, const Session* me) {
  if (outcome.is_ok()) {
    session->has_logits = true;
  } else {
    // As before the call, less the logits: their buffer may have been written.
    session->computed = session->computed_before;
    session->table.truncate(pool_, session->computed);
    session->has_logits = false;
  }
  session->outcome = std::move(outcome);
  session->done = true;
  std::erase(queue_, session);
  if (session != me) session->wake.notify_one();
}

}  // namespace driftwood::engine
