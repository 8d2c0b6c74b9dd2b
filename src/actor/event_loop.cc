#include "actor/event_loop.h"

#include <algorithm>
#include <utility>

namespace driftwood::actor {

EventLoop::~EventLoop() { DW_CHECK(instance_ == nullptr, "an actor ends before it is destroyed"); }

EventLoop::SliceEnd EventLoop::run_slice() {
  for (;;) {
    const bool ran = run_event();
    if (status_.ended()) return SliceEnd::kEnded;  // written by this thread only
    if (ran && host_->others_wait()) return SliceEnd::kMore;
    if (!ran && go_idle()) return SliceEnd::kIdle;
  }
}

bool EventLoop::take_stop_or_message(bool* stop) {
  const std::lock_guard lock(mutex_);
  publish_locked();
  *stop = stop_requested_;
  if (*stop || held() || !started_ || !context_.forks.empty() || context_.generates.any_ended() ||
      mailbox_.empty()) {
    return false;
  }
  context_.message = std::move(mailbox_.front());
  mailbox_.pop_front();
  return true;
}

Status EventLoop::run_next(bool has_message, bool* ran) {
  *ran = true;
  if (!started_) {
    started_ = true;
    return call_handler(Handler::kStart, on_start_, {}, nullptr);
  }
  if (!context_.forks.empty()) {
    const ForkNotice notice = context_.forks.front();
    context_.forks.pop_front();
    const uint64_t args[2] = {static_cast<uint64_t>(notice.tag), static_cast<uint64_t>(notice.child)};
    return call_handler(Handler::kFork, on_fork_, args, nullptr);
  }
  if (context_.generates.any_ended()) return run_done();
  if (has_message) {
    const uint64_t args[2] = {context_.message.sender, context_.message.bytes.size()};
    const Status status = call_handler(Handler::kMessage, on_message_, args, nullptr);
    context_.message = Message{};
    return status;
  }
  if (const auto tag = context_.timers.any() ? context_.timers.take_due(host_monotonic_ns()) : std::nullopt) {
    const uint64_t args[1] = {static_cast<uint64_t>(*tag)};
    return call_handler(Handler::kTimer, on_timer_, args, nullptr);
  }
  if (context_.generates.any()) return run_token();
  *ran = false;
  return Status::ok();
}

bool EventLoop::run_event() {
  run_rest_jobs();
  bool stop = false;
  const bool has_message = take_stop_or_message(&stop);
  if (stop) {
    end(ActorState::kStopped, Status::ok());
    return true;
  }
  was_held_ = held();
  if (was_held_) return false;
  bool ran = false;
  Status status = run_next(has_message, &ran);
  if (!ran) return false;
  if (instance_->exit_code() >= 0) {
    // The guest called exit: its doing, so what it did before counts.
    commit_effects();
    end(ActorState::kExited, Status::ok());
  } else if (status.code() == Code::kCancelled) {
    context_.effects.clear();  // stop() broke a handler off
    context_.state_requests.clear();
    end(ActorState::kStopped, Status::ok());
  } else if (!status.is_ok()) {
    context_.effects.clear();
    context_.state_requests.clear();
    end(ActorState::kTrapped, std::move(status));
  } else {
    commit_effects();
    if (command_) {
      end(ActorState::kExited, Status::ok());
    } else {
      run_state_requests();
    }
  }
  return true;
}

Status EventLoop::call_handler(Handler kind, int handle, std::span<const uint64_t> args, uint64_t* result) {
  if (handle < 0) return Status::ok();
  context_.handler = kind;
  uint64_t value = 0;
  const std::span<uint64_t> results =
      result == nullptr ? std::span<uint64_t>() : std::span<uint64_t>(&value, 1);
  Status status = instance_->call_resolved(handle, args, results);
  context_.handler = Handler::kNone;
  ++handlers_run_;
  memory_bytes_ = instance_->memory_bytes();
  if (result != nullptr) *result = value;
  return status;
}

Status EventLoop::run_done() {
  const GenerateDone done = context_.generates.take_ended();
  if (!done.message.empty()) context_.last_error = done.message;
  const uint64_t args[4] = {static_cast<uint64_t>(done.tag), static_cast<uint64_t>(int64_t{done.session}),
                            static_cast<uint64_t>(static_cast<int32_t>(done.reason)),
                            static_cast<uint64_t>(done.tokens)};
  return call_handler(Handler::kDone, on_done_, args, nullptr);
}

bool EventLoop::is_end_token(int32_t token) const {
  const text::Tokenizer* tokenizer = context_.engine->model().tokenizer.get();
  if (tokenizer == nullptr) return false;
  const std::vector<int32_t>& ends = tokenizer->end_tokens();
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

void EventLoop::end_generate(const Generate& generate, DoneReason reason, std::string message) {
  if (Session* session = context_.sessions.find(generate.session)) session->generating = false;
  context_.generates.end(generate.tag, reason, std::move(message));
}

// One token of the generate whose turn it is: compute, draw, ask the guest, append.
Status EventLoop::run_token() {
  const Generate generate = *context_.generates.current();
  Session* session = context_.sessions.find(generate.session);
  DW_CHECK(session != nullptr, "a session stays open while it generates");
  engine::Engine& engine = *context_.engine;
  const engine::SessionId id = session->id;
  const auto fail = [&](DoneReason reason, const Status& status) {
    end_generate(generate, reason, "generate: " + status.message());
    return Status::ok();
  };
  if (const Status room = context_.check_tokens(1); !room.is_ok()) return fail(DoneReason::kLimit, room);
  const Result<int64_t> position = engine.length(id);
  if (!position.is_ok()) return fail(DoneReason::kError, position.status());
  if (*position >= session->capacity) {
    end_generate(generate, DoneReason::kContextFull, "");
    return Status::ok();
  }
  if (const Status stepped = engine.step(id); !stepped.is_ok()) return fail(DoneReason::kError, stepped);
  const Result<int32_t> token = engine.sample(id, session->next_mask());
  session->masked = false;
  if (!token.is_ok()) return fail(DoneReason::kError, token.status());
  if (generate.stop_at_end && is_end_token(*token)) {
    end_generate(generate, DoneReason::kEndToken, "");
    return Status::ok();
  }
  const uint64_t args[4] = {static_cast<uint64_t>(generate.tag),
                            static_cast<uint64_t>(int64_t{generate.session}),
                            static_cast<uint64_t>(int64_t{*token}), static_cast<uint64_t>(*position)};
  uint64_t verdict = 0;
  context_.token_session = generate.session;
  context_.forced_token.reset();
  DW_RETURN_IF_ERROR(call_handler(Handler::kToken, on_token_, args, &verdict));
  return finish_token(generate, *token, *position, static_cast<int32_t>(verdict));
}

Status EventLoop::finish_token(const Generate& before, int32_t token, int64_t position, int32_t verdict) {
  enum { kContinue = 0, kStop = 1, kReplace = 2, kDrop = 3 };
  Generate* generate = context_.generates.find(before.tag);
  // The guest may have cancelled it meanwhile (and begun another with the same tag): then the token is
  // dropped.
  if (generate == nullptr || generate->serial != before.serial) return Status::ok();
  if (verdict == kDrop) {
    end_generate(before, DoneReason::kStopped, "");
    return Status::ok();
  }
  std::string fault;
  if (verdict < kContinue || verdict > kDrop) fault = "dw_on_token returned " + std::to_string(verdict);
  if (verdict == kReplace && !context_.forced_token)
    fault = "dw_on_token returned replace without force_token";
  if (!fault.empty()) {
    end_generate(before, DoneReason::kError, fault);
    return Status::ok();
  }
  if (verdict == kReplace) token = *context_.forced_token;
  const Session* session = context_.sessions.find(before.session);
  DW_CHECK(session != nullptr, "a session stays open while it generates");
  const Status appended = context_.engine->append(session->id, {&token, 1});
  if (!appended.is_ok()) {
    end_generate(before, DoneReason::kError, "generate: " + appended.message());
    return Status::ok();
  }
  ++context_.tokens_generated;
  ++generate->produced;
  if (verdict == kStop) {
    end_generate(before, DoneReason::kStopped, "");
  } else if (generate->max_tokens != 0 && generate->produced >= generate->max_tokens) {
    end_generate(before, DoneReason::kMaxTokens, "");
  } else if (position + 1 >= session->capacity) {
    end_generate(before, DoneReason::kContextFull, "");
  } else {
    context_.generates.advance();
  }
  return Status::ok();
}

void EventLoop::commit_effects() {
  for (const Effects::Effect& effect : context_.effects.list()) {
    const std::span<const uint8_t> bytes = context_.effects.bytes(effect);
    ++sequence_;
    if (effect.to_actor) {
      Message message{context_.id, epoch_, sequence_, {bytes.begin(), bytes.end()}};
      if (!host_->deliver(effect.target, std::move(message))) ++messages_dropped_;
    } else if (context_.options.output) {
      context_.options.output({context_.id,
                               epoch_,
                               sequence_,
                               effect.kind,
                               {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
    }
  }
  context_.effects.clear();
}

void EventLoop::publish_locked() {
  status_.handlers_run = handlers_run_;
  status_.effects = sequence_;
  status_.tokens_appended = context_.tokens_appended;
  status_.tokens_generated = context_.tokens_generated;
  status_.memory_bytes = memory_bytes_;
  status_.sessions = context_.sessions.count();
  status_.timers = context_.timers.count();
  status_.messages_dropped = messages_dropped_;
  status_.held = held();
}

void EventLoop::end(ActorState state, Status status) {
  const int exit_code = std::max(0, instance_->exit_code());
  context_.sessions.close_all(context_.engine);
  context_.window.close();
  std::unique_ptr<wasm::Instance> instance;
  {
    const std::lock_guard lock(mutex_);
    instance = std::move(instance_);  // interrupt() looks at it
  }
  instance.reset();
  const std::lock_guard lock(mutex_);
  publish_locked();
  status_.state = state;
  status_.status = std::move(status);
  status_.exit_code = exit_code;
  mailbox_.clear();
  refuse_rest_jobs_locked();
}

void EventLoop::announce_end() {
  const std::lock_guard lock(mutex_);
  announced_ = true;
  changed_.notify_all();
}

bool EventLoop::go_idle() {
  const std::lock_guard lock(mutex_);
  if (stop_requested_ || !rest_jobs_.empty()) return false;
  // was_held_: released since it looked.
  if (!held() && (was_held_ || !mailbox_.empty())) return false;
  publish_locked();
  std::optional<uint64_t> next_timer_ns;
  if (context_.timers.any() && !was_held_) next_timer_ns = context_.timers.next_due_ns();
  host_->set_alarm(id(), next_timer_ns);
  scheduled_ = false;  // from here on it is anybody's
  changed_.notify_all();
  return true;
}

}  // namespace driftwood::actor
