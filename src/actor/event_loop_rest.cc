// EventLoop at rest: jobs from outside, holding, and what a handler asked to be done when it has returned.
#include <algorithm>
#include <utility>

#include "actor/event_loop.h"

namespace driftwood::actor {
namespace {

constexpr int kWarningLevel = 2;

}  // namespace

Status EventLoop::at_rest(const std::function<Status()>& job) {
  std::unique_lock lock(mutex_);
  if (status_.ended() || stop_requested_) return not_found("actor '" + context_.name + "' has ended");
  if (!scheduled_) {
    scheduled_ = true;  // nobody else runs it now
    lock.unlock();
    Status result = job();
    if (!go_idle()) host_->schedule(id());  // whatever came meanwhile
    return result;
  }
  RestJob entry{&job, Status::ok(), false};
  rest_jobs_.push_back(&entry);
  changed_.wait(lock, [&] { return entry.done; });
  return std::move(entry.result);
}

bool EventLoop::has_nothing_to_do() const {
  const std::lock_guard lock(mutex_);
  return started_ && !command_ && !stop_requested_ && mailbox_.empty() && rest_jobs_.empty() &&
         context_.forks.empty() && !context_.generates.any() && !context_.generates.any_ended() &&
         !context_.timers.any();
}

void EventLoop::run_rest_jobs() {
  std::vector<RestJob*> jobs;
  {
    const std::lock_guard lock(mutex_);
    if (stop_requested_) return;  // end() refuses them
    jobs.swap(rest_jobs_);
  }
  for (RestJob* job : jobs) {
    Status result = (*job->run)();
    const std::lock_guard lock(mutex_);
    job->result = std::move(result);
    job->done = true;
    changed_.notify_all();
  }
}

void EventLoop::refuse_rest_jobs_locked() {
  for (RestJob* job : rest_jobs_) {
    job->result = not_found("actor '" + context_.name + "' has ended");
    job->done = true;
  }
  rest_jobs_.clear();
  changed_.notify_all();
}

void EventLoop::hold_at(const HoldPoint& point) {
  hold_tokens_.store(point.tokens_generated, std::memory_order_relaxed);
  hold_handlers_.store(point.handlers_run, std::memory_order_relaxed);
  wake();
}

void EventLoop::run_state_requests() {
  std::vector<ActorContext::StateRequest> requests;
  requests.swap(context_.state_requests);
  for (const ActorContext::StateRequest& request : requests) {
    if (request.fork) {
      const Result<ActorId> child = host_->fork_at_rest(*this, request.name, request.stream, request.tag);
      if (!child.is_ok()) context_.last_error = "actor_fork: " + child.status().message();
      const int64_t told =
          child.is_ok() ? static_cast<int64_t>(*child) : -static_cast<int64_t>(child.status().code());
      context_.forks.push_back({request.tag, told});
      continue;
    }
    Result<std::shared_ptr<FrozenActor>> frozen = freeze();
    const Status kept =
        frozen.is_ok() ? context_.options.checkpoint(request.name, std::move(*frozen)) : frozen.status();
    if (!kept.is_ok() && context_.options.log) {
      context_.options.log(context_.id, kWarningLevel, "checkpoint: " + kept.message());
    }
  }
}

}  // namespace driftwood::actor
