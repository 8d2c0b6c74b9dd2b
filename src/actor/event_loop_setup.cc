// EventLoop: how an actor is made, and what other threads do to it.
#include <algorithm>
#include <utility>

#include "actor/event_loop.h"
#include "actor/guest_options.h"

namespace driftwood::actor {
namespace {

constexpr int kWarningLevel = 2;

bool exported(const wasm::ModuleReport& report, std::string_view name) {
  return std::find(report.exports.begin(), report.exports.end(), name) != report.exports.end();
}

constexpr const char* kHandlers[] = {"dw_on_start", "dw_on_message", "dw_on_token",
                                     "dw_on_done",  "dw_on_timer",   "dw_on_fork"};

}  // namespace

std::vector<std::string> freeze_blockers(const wasm::ModuleReport& report) {
  std::vector<std::string> blockers = report.snapshot_blockers;
  const bool handles = std::any_of(std::begin(kHandlers), std::end(kHandlers),
                                   [&](const char* handler) { return exported(report, handler); });
  if (!handles && exported(report, "_start")) {
    blockers.emplace_back("it is a command (_start, no handlers), which has no rest point before it ends");
  }
  return blockers;
}

Result<std::shared_ptr<EventLoop>> EventLoop::create(wasm::Runtime& runtime,
                                                     std::shared_ptr<wasm::Module> module, ActorId id,
                                                     std::string name, ActorOptions options,
                                                     engine::Engine* engine, device::Device* device,
                                                     LoopHost* host) {
  std::shared_ptr<EventLoop> loop(
      new EventLoop(id, std::move(name), std::move(options), engine, device, host));
  if (Status made = loop->instantiate(runtime, std::move(module)); !made.is_ok()) {
    loop->abandon();
    return made;
  }
  return loop;
}

// Initialisers are guest code: they may have opened sessions.
void EventLoop::abandon() {
  if (context_.engine != nullptr) context_.sessions.close_all(context_.engine);
  context_.window.close();
  instance_.reset();
}

Status EventLoop::instantiate(wasm::Runtime& runtime, std::shared_ptr<wasm::Module> module) {
  module_ = std::move(module);
  DW_ASSIGN_OR_RETURN(instance_,
                      runtime.instantiate(module_, host_imports(), instance_options_of(&context_)));
  return open();
}

Status EventLoop::open() {
  const wasm::ModuleReport& report = module_->report();
  DW_RETURN_IF_ERROR(resolve_handlers(report));
  memory_bytes_ = instance_->memory_bytes();
  hold_tokens_.store(context_.options.hold_at.tokens_generated, std::memory_order_relaxed);
  hold_handlers_.store(context_.options.hold_at.handlers_run, std::memory_order_relaxed);
  if (context_.options.log) {
    for (const std::string& blocker : freeze_blockers(report)) {
      context_.options.log(context_.id, kWarningLevel, "can't be frozen: " + blocker);
    }
  }
  const std::lock_guard lock(mutex_);
  status_.id = context_.id;
  status_.name = context_.name;
  status_.state = ActorState::kIdle;
  status_.parent = parent_;
  publish_locked();
  return Status::ok();
}

Status EventLoop::resolve_handlers(const wasm::ModuleReport& report) {
  using enum wasm::ValueType;
  struct Wanted {
    const char* name;
    wasm::Signature signature;
    int* handle;
  };
  const Wanted wanted[] = {
      {"dw_on_start", {{}, {}}, &on_start_},
      {"dw_on_message", {{kI64, kI32}, {}}, &on_message_},
      {"dw_on_token", {{kI64, kI32, kI32, kI64}, {kI32}}, &on_token_},
      {"dw_on_done", {{kI64, kI32, kI32, kI64}, {}}, &on_done_},
      {"dw_on_timer", {{kI64}, {}}, &on_timer_},
      {"dw_on_fork", {{kI64, kI64}, {}}, &on_fork_},
  };
  bool any = false;
  std::string names;
  for (const Wanted& one : wanted) {
    names += (names.empty() ? "" : ", ") + std::string(one.name);
    if (!exported(report, one.name)) continue;
    Result<int> handle = instance_->resolve(one.name, one.signature);
    if (!handle.is_ok()) return handle.status().with_context("actor '" + context_.name + "': " + one.name);
    *one.handle = *handle;
    any = true;
  }
  if (any) return Status::ok();
  if (!exported(report, "_start")) {
    return invalid_argument("actor '" + context_.name + "': the module exports neither a handler (" + names +
                            ") nor _start");
  }
  command_ = true;
  DW_ASSIGN_OR_RETURN(on_start_, instance_->resolve("_start", {{}, {}}));
  return Status::ok();
}

Status EventLoop::check_room(uint64_t length, size_t staged) const {
  const std::lock_guard lock(mutex_);
  if (status_.ended() || stop_requested_) return not_found("actor '" + context_.name + "' has ended");
  if (length > limits().max_message_bytes) {
    return resource_exhausted("a message of " + std::to_string(length) + " bytes; actor '" + context_.name +
                              "' takes " + std::to_string(limits().max_message_bytes));
  }
  if (mailbox_.size() + staged >= static_cast<size_t>(std::max(limits().max_mailbox, 0))) {
    return resource_exhausted("the mailbox of actor '" + context_.name + "' is full (" +
                              std::to_string(limits().max_mailbox) + " messages)");
  }
  return Status::ok();
}

Status EventLoop::deliver(Message message) {
  DW_RETURN_IF_ERROR(check_room(message.bytes.size(), 0));
  {
    const std::lock_guard lock(mutex_);
    if (status_.ended()) return not_found("actor '" + context_.name + "' has ended");
    mailbox_.push_back(std::move(message));
  }
  wake();
  return Status::ok();
}

void EventLoop::request_stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_requested_ = true;
  }
  wake();
}

void EventLoop::interrupt() {
  const std::lock_guard lock(mutex_);
  if (instance_ != nullptr) instance_->interrupt();
}

void EventLoop::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (scheduled_ || status_.ended()) return;
    scheduled_ = true;
  }
  host_->schedule(id());
}

ActorStatus EventLoop::status() const {
  const std::lock_guard lock(mutex_);
  ActorStatus status = status_;
  status.mailbox = static_cast<int32_t>(mailbox_.size());
  if (!status.ended()) status.state = scheduled_ ? ActorState::kBusy : ActorState::kIdle;
  return status;
}

Status EventLoop::wait_idle(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [&] { return announced_ || !scheduled_; })) {
    return deadline_exceeded("actor '" + context_.name + "' is still busy");
  }
  return status_.status;
}

Status EventLoop::wait_exit(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [&] { return announced_; })) {
    return deadline_exceeded("actor '" + context_.name + "' has not ended");
  }
  return status_.status;
}

}  // namespace driftwood::actor
