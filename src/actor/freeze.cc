// An actor at rest to a value, and to a second actor.
#include <algorithm>
#include <utility>

#include "actor/event_loop.h"
#include "actor/guest_options.h"

namespace driftwood::actor {
namespace {

ActorSetup setup_of(const ActorOptions& options) {
  ActorSetup setup{options.limits, options.config, options.wasi.args, options.wasi.env, {}};
  for (const wasm::WasiOptions::Folder& folder : options.wasi.folders) {
    setup.folders.push_back({folder.guest_path, folder.writable});
  }
  return setup;
}

}  // namespace

void rekey(FrozenActor* frozen, uint64_t stream) {
  frozen->life.draws.seed = engine::forked_stream(frozen->life.draws.seed, stream);
  for (engine::FrozenSession& session : frozen->sessions) {
    session.sampling.stream = engine::forked_stream(session.sampling.stream, stream);
  }
}

Status EventLoop::can_freeze() const {
  if (command_) {
    return failed_precondition("actor '" + context_.name +
                               "' is a command (_start): it has no rest point before it ends");
  }
  return instance_->can_freeze();
}

ActorLife EventLoop::life() const {
  ActorLife life;
  life.epoch = epoch_;
  life.sequence = sequence_;
  life.handlers_run = handlers_run_;
  life.messages_dropped = messages_dropped_;
  life.started = started_;
  life.tokens_appended = context_.tokens_appended;
  life.tokens_generated = context_.tokens_generated;
  life.last_error = context_.last_error;
  life.draws = context_.draws.state();
  {
    const std::lock_guard lock(mutex_);
    life.mailbox.assign(mailbox_.begin(), mailbox_.end());
  }
  const uint64_t now_ns = host_monotonic_ns();
  for (const Timers::Timer& timer : context_.timers.list()) {
    life.timers.push_back({timer.tag, timer.due_ns > now_ns ? timer.due_ns - now_ns : 0});
  }
  life.generates = context_.generates.state();
  life.forks = context_.forks;
  life.slots = context_.sessions.slots();
  return life;
}

Result<std::shared_ptr<FrozenActor>> EventLoop::freeze() {
  DW_RETURN_IF_ERROR(can_freeze());
  auto frozen = std::make_shared<FrozenActor>();
  frozen->name = context_.name;
  frozen->identity.module_hash = module_->report().hash_hex;
  frozen->identity.abi = std::string(kAbiText);
  frozen->setup = setup_of(context_.options);
  frozen->module = module_;
  frozen->parent = parent_;
  frozen->life = life();
  if (context_.engine != nullptr) {
    frozen->identity.model = context_.engine->identity(context_.engine->max_context());
    for (const Session& slot : frozen->life.slots) {
      if (slot.handle == 0) continue;
      DW_ASSIGN_OR_RETURN(engine::FrozenSession session, context_.engine->freeze(slot.id));
      frozen->sessions.push_back(std::move(session));
    }
  }
  DW_ASSIGN_OR_RETURN(frozen->globals, instance_->globals());
  DW_ASSIGN_OR_RETURN(frozen->memory, instance_->freeze_memory());
  if (digests_of_ != nullptr && frozen->memory.image.owner == digests_of_) {
    frozen->image_digests = image_digests_;
  }
  return frozen;
}

Status EventLoop::fork_sessions(const EventLoop& parent, uint64_t stream) {
  std::vector<Session> slots = parent.context_.sessions.slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].handle == 0) continue;
    const Result<engine::SessionId> id = context_.engine->fork(slots[i].id, stream);
    if (!id.is_ok()) {
      for (size_t j = i; j < slots.size(); ++j) slots[j].handle = 0;
      context_.sessions.adopt(std::move(slots));  // those made are closed with the loop
      return id.status();
    }
    slots[i].id = *id;
  }
  context_.sessions.adopt(std::move(slots));
  return Status::ok();
}

Result<std::shared_ptr<EventLoop>> EventLoop::fork(wasm::Runtime& runtime, const ForkAs& as) {
  DW_RETURN_IF_ERROR(can_freeze());
  DW_ASSIGN_OR_RETURN(const wasm::FrozenMemory memory, instance_->fork_memory());
  DW_ASSIGN_OR_RETURN(const std::vector<wasm::GlobalValue> globals, instance_->globals());
  ActorOptions options = context_.options;
  options.hold_at = {hold_tokens_.load(std::memory_order_relaxed),
                     hold_handlers_.load(std::memory_order_relaxed)};
  std::shared_ptr<EventLoop> child(
      new EventLoop(as.id, as.name, std::move(options), context_.engine, context_.device, host_));
  ActorLife life = this->life();
  life.slots.clear();
  life.epoch = 1;
  life.sequence = 0;
  life.draws.seed = engine::forked_stream(life.draws.seed, as.stream);
  if (as.tag) life.forks.push_back({*as.tag, 0});
  child->adopt(life);
  child->module_ = module_;
  child->parent_ = parent_;
  if (memory.image.owner == digests_of_) {
    child->digests_of_ = digests_of_;
    child->image_digests_ = image_digests_;
  }
  Status made = child->fork_sessions(*this, as.stream);
  if (made.is_ok()) {
    auto instance =
        runtime.restore(module_, host_imports(), instance_options_of(&child->context_), memory, globals);
    made = instance.is_ok() ? Status::ok() : instance.status();
    if (made.is_ok()) child->instance_ = std::move(*instance);
  }
  if (made.is_ok()) made = child->open();
  if (!made.is_ok()) {
    child->abandon();
    return made.with_context("forking actor '" + context_.name + "'");
  }
  return child;
}

}  // namespace driftwood::actor
