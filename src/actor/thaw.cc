// An actor from a value.
#include <algorithm>
#include <utility>

#include "actor/event_loop.h"
#include "actor/guest_options.h"

namespace driftwood::actor {
namespace {

// What was asked for, within what is allowed here.
ActorLimits cap(const ActorLimits& wanted, const ActorLimits& most) {
  ActorLimits limits;
  limits.max_memory_bytes = std::min(wanted.max_memory_bytes, most.max_memory_bytes);
  limits.handler_deadline = wanted.handler_deadline;
  if (most.handler_deadline.count() != 0 &&
      (wanted.handler_deadline.count() == 0 || wanted.handler_deadline > most.handler_deadline)) {
    limits.handler_deadline = most.handler_deadline;
  }
  limits.max_tokens = std::min(wanted.max_tokens, most.max_tokens);
  limits.max_sessions = std::min(wanted.max_sessions, most.max_sessions);
  limits.max_message_bytes = std::min(wanted.max_message_bytes, most.max_message_bytes);
  limits.max_mailbox = std::min(wanted.max_mailbox, most.max_mailbox);
  limits.max_generates = std::min(wanted.max_generates, most.max_generates);
  limits.max_timers = std::min(wanted.max_timers, most.max_timers);
  limits.max_effect_bytes = std::min(wanted.max_effect_bytes, most.max_effect_bytes);
  return limits;
}

Status check_within(const char* what, size_t has, int64_t most) {
  if (static_cast<int64_t>(has) <= most) return Status::ok();
  return resource_exhausted("it has " + std::to_string(has) + " " + what + ", allowed here are " +
                            std::to_string(most));
}

Status check_limits(const FrozenActor& frozen, const ActorLimits& limits) {
  DW_RETURN_IF_ERROR(check_within("sessions", frozen.sessions.size(), limits.max_sessions));
  DW_RETURN_IF_ERROR(check_within("waiting messages", frozen.life.mailbox.size(), limits.max_mailbox));
  DW_RETURN_IF_ERROR(check_within("timers", frozen.life.timers.size(), limits.max_timers));
  return check_within("generates", frozen.life.generates.running.size(), limits.max_generates);
}

// The grants it had must be there again, in their order: descriptors are numbers.
Result<std::vector<wasm::WasiOptions::Folder>> grant_folders(
    const std::vector<FolderGrant>& wanted, const std::vector<wasm::WasiOptions::Folder>& offered) {
  std::vector<wasm::WasiOptions::Folder> folders;
  for (const FolderGrant& grant : wanted) {
    const auto found = std::find_if(offered.begin(), offered.end(), [&](const auto& folder) {
      return folder.guest_path == grant.guest_path;
    });
    const std::string what =
        std::string(grant.writable ? "the writable" : "the") + " folder '" + grant.guest_path + "'";
    if (found == offered.end()) {
      return failed_precondition("it was granted " + what + ": grant it again (--dir GUEST=HOST)");
    }
    if (grant.writable && !found->writable) {
      return failed_precondition("it was granted " + what + ", here it is read-only");
    }
    folders.push_back(*found);
    folders.back().writable = grant.writable;
  }
  return folders;
}

Status check_module(const FrozenActor& frozen, const wasm::Module& module) {
  if (frozen.identity.abi != kAbiText) {
    return failed_precondition("it was made under guest ABI '" + frozen.identity.abi + "', here is '" +
                               kAbiText + "'");
  }
  if (frozen.identity.module_hash == module.report().hash_hex) return Status::ok();
  return failed_precondition("its module has the hash " + frozen.identity.module_hash + ", module '" +
                             module.name() + "' has " + module.report().hash_hex);
}

Status check_model(const FrozenActor& frozen, const engine::Engine* engine) {
  const std::string& wanted = frozen.identity.model.model_fingerprint;
  if (engine == nullptr) {
    if (wanted.empty()) return Status::ok();
    return failed_precondition("it needs the model with fingerprint " + wanted + ", here is none");
  }
  if (wanted.empty()) return Status::ok();  // it never had one: calls answered unavailable
  return engine::check_identity(frozen.identity.model, engine->identity(engine->max_context()));
}

}  // namespace

void EventLoop::adopt(const ActorLife& life) {
  epoch_ = life.epoch;
  sequence_ = life.sequence;
  handlers_run_ = life.handlers_run;
  messages_dropped_ = life.messages_dropped;
  started_ = life.started;
  context_.tokens_appended = life.tokens_appended;
  context_.tokens_generated = life.tokens_generated;
  context_.last_error = life.last_error;
  context_.draws = Draws(life.draws);
  context_.generates.adopt(life.generates);
  context_.forks = life.forks;
  mailbox_.assign(life.mailbox.begin(), life.mailbox.end());
  const uint64_t now_ns = host_monotonic_ns();
  for (const FrozenTimer& timer : life.timers) {
    const Status set = context_.timers.set(timer.tag, now_ns + timer.remaining_ns);
    DW_CHECK(set.is_ok(), "timers within the limit");
  }
}

Status EventLoop::thaw_sessions(const FrozenActor& frozen) {
  std::vector<Session> slots = frozen.life.slots;
  auto session = frozen.sessions.begin();
  Status failed;
  for (Session& slot : slots) {
    if (slot.handle == 0) continue;
    if (!failed.is_ok()) {
      slot.handle = 0;
      continue;
    }
    DW_CHECK(session != frozen.sessions.end(), "one frozen session for every open slot");
    const Result<engine::SessionId> id = context_.engine->thaw(*session++);
    if (id.is_ok()) {
      slot.id = *id;
    } else {
      failed = id.status().with_context("session " + std::to_string(slot.handle));
      slot.handle = 0;
    }
  }
  context_.sessions.adopt(std::move(slots));
  return failed;
}

Result<std::shared_ptr<EventLoop>> EventLoop::thaw(wasm::Runtime& runtime,
                                                   std::shared_ptr<wasm::Module> module, ActorId id,
                                                   std::string name, const FrozenActor& frozen,
                                                   ActorOptions options, engine::Engine* engine,
                                                   device::Device* device, LoopHost* host) {
  if (module == nullptr) module = frozen.module;
  if (module == nullptr) return invalid_argument("thawing '" + name + "': its module is not there");
  options.limits = cap(frozen.setup.limits, options.limits);
  options.config = frozen.setup.config;
  options.seed = frozen.life.draws.seed;
  options.wasi.args = frozen.setup.args;
  options.wasi.env = frozen.setup.env;
  Status fits = check_module(frozen, *module);
  if (fits.is_ok()) fits = check_model(frozen, engine);
  if (fits.is_ok()) fits = check_limits(frozen, options.limits);
  if (!fits.is_ok()) return fits.with_context("thawing '" + name + "'");
  DW_ASSIGN_OR_RETURN(options.wasi.folders, grant_folders(frozen.setup.folders, options.wasi.folders));
  std::shared_ptr<EventLoop> loop(
      new EventLoop(id, std::move(name), std::move(options), engine, device, host));
  loop->module_ = module;
  loop->adopt(frozen.life);
  ++loop->epoch_;
  loop->parent_ = frozen.parent;
  loop->digests_of_ = frozen.memory.image.owner;
  loop->image_digests_ = frozen.image_digests;
  Status made = frozen.sessions.empty() ? Status::ok() : loop->thaw_sessions(frozen);
  if (frozen.sessions.empty()) loop->context_.sessions.adopt(frozen.life.slots);
  if (made.is_ok()) {
    auto instance = runtime.restore(module, host_imports(), instance_options_of(&loop->context_),
                                    frozen.memory, frozen.globals);
    made = instance.is_ok() ? Status::ok() : instance.status();
    if (made.is_ok()) loop->instance_ = std::move(*instance);
  }
  if (made.is_ok()) made = loop->open();
  if (made.is_ok()) return loop;
  loop->abandon();
  return made.with_context("thawing '" + loop->name() + "'");
}

}  // namespace driftwood::actor
