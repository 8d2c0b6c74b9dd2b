// One link of a chain of processes, and what the driver shares with it.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>

#include "actor/actor_saver.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "cli/continuity.h"
#include "cli/embedded_guests.h"

namespace driftwood::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{300'000};

}  // namespace

std::vector<int32_t> continuity_prompt(int64_t vocabulary, int count, int number) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) {
    const uint64_t draw = random_u64(20, static_cast<uint64_t>(number), static_cast<uint64_t>(i), 0);
    ids.push_back(static_cast<int32_t>(draw % static_cast<uint64_t>(vocabulary)));
  }
  return ids;
}

Result<actor::ActorId> start_continuity_actor(ActorHost& host, const std::string& name, int prompt_tokens,
                                              bool sampled, int number, uint64_t handlers) {
  DW_ASSIGN_OR_RETURN(const auto module, host.load_bytes("tokens", tokens_guest()));
  actor::ActorOptions options;
  std::string config = "max_tokens=100000\nseed=11\n";
  config += sampled ? "temperature=0.8\ntop_p=0.95\nrepetition_penalty=1.1\n" : "temperature=0\n";
  options.config.assign(config.begin(), config.end());
  options.output = [](const actor::Output&) {};
  options.hold_at.handlers_run = handlers;
  DW_ASSIGN_OR_RETURN(const actor::ActorId id, host.spawn(name, module, std::move(options)));
  const std::vector<int32_t> prompt =
      continuity_prompt(host.opened().engine->model().config.vocab_size, prompt_tokens, number);
  DW_RETURN_IF_ERROR(host.system().send(
      id, {reinterpret_cast<const uint8_t*>(prompt.data()), prompt.size() * sizeof(int32_t)}));
  DW_RETURN_IF_ERROR(host.system().wait_idle(id, kPatience));
  return id;
}

Status run_to_handlers(ActorHost& host, actor::ActorId id, uint64_t handlers) {
  actor::HoldPoint point;
  point.handlers_run = handlers;
  DW_RETURN_IF_ERROR(host.system().hold_at(id, point));
  DW_RETURN_IF_ERROR(host.system().wait_idle(id, kPatience));
  DW_ASSIGN_OR_RETURN(const actor::ActorStatus status, host.system().status(id));
  if (status.handlers_run == handlers) return Status::ok();
  return internal_error("actor '" + status.name + "' stopped after " + std::to_string(status.handlers_run) +
                        " handlers, not " + std::to_string(handlers));
}

Result<NextLogits> next_logits(engine::Engine& engine, const engine::FrozenSession& session) {
  DW_ASSIGN_OR_RETURN(const engine::SessionId id, engine.thaw(session));
  NextLogits next;
  Status status = engine.step(id);
  if (status.is_ok()) {
    const auto row = engine.logits(id);
    const auto rows = engine.rows_computed(id);
    status = row.is_ok() ? rows.status() : row.status();
    if (status.is_ok()) {
      next.digest = hex(sha256({reinterpret_cast<const uint8_t*>(row->data()), row->size() * sizeof(float)}));
      next.rows = *rows;
    }
  }
  const Status closed = engine.close(id);
  DW_RETURN_IF_ERROR(status);
  DW_RETURN_IF_ERROR(closed);
  return next;
}

Result<int64_t> rows_of(engine::Engine& engine, const actor::FrozenActor& frozen) {
  for (const actor::Session& slot : frozen.life.slots) {
    if (slot.handle != 0) return engine.rows_computed(slot.id);
  }
  return internal_error("the actor has no session");
}

namespace {

Result<actor::ActorId> restore(ActorHost& host, snapshot::Store& store, const std::string& which) {
  DW_ASSIGN_OR_RETURN(const auto stored, store.load(which));
  DW_ASSIGN_OR_RETURN(const auto frozen, actor::read_actor(stored));
  DW_ASSIGN_OR_RETURN(const std::vector<uint8_t> code, actor::module_code(*stored));
  DW_ASSIGN_OR_RETURN(const auto module, host.load_bytes("tokens", code));
  actor::ActorOptions options;
  options.output = [](const actor::Output&) {};
  options.log = [](actor::ActorId, int, std::string_view) {};
  options.hold_at.handlers_run = frozen->life.handlers_run;
  return host.system().thaw("actor", *frozen, module, std::move(options));
}

}  // namespace

Status run_continuity_step(const ContinuityStepFlags& flags) {
  DW_ASSIGN_OR_RETURN(const auto host, ActorHost::open(flags.host));
  DW_ASSIGN_OR_RETURN(const auto store, snapshot::Store::open(flags.store, {true, false, 1}));
  std::vector<actor::ActorId> beside;
  for (int i = 0; i < flags.beside; ++i) {
    DW_ASSIGN_OR_RETURN(const actor::ActorId id,
                        start_continuity_actor(*host, "beside" + std::to_string(i), kPromptBeside, true,
                                               i + 1, kHandlersBefore));
    beside.push_back(id);
  }
  actor::ActorId id = 0;
  if (flags.from.empty()) {
    DW_ASSIGN_OR_RETURN(
        id, start_continuity_actor(*host, "actor", flags.prompt_tokens, flags.sampled, 0, kHandlersBefore));
  } else {
    DW_ASSIGN_OR_RETURN(id, restore(*host, *store, flags.from));
    for (const actor::ActorId other : beside) {
      actor::HoldPoint point;
      point.handlers_run = kHandlersBefore + kTokensBeside;
      DW_RETURN_IF_ERROR(host->system().hold_at(other, point));
    }
    DW_ASSIGN_OR_RETURN(const actor::ActorStatus status, host->system().status(id));
    DW_RETURN_IF_ERROR(run_to_handlers(*host, id, status.handlers_run + 1));
  }
  DW_ASSIGN_OR_RETURN(const auto frozen, host->system().freeze(id));
  engine::Engine& engine = *host->opened().engine;
  DW_ASSIGN_OR_RETURN(const int64_t rows, rows_of(engine, *frozen));
  actor::ActorSaver saver(store.get());
  DW_ASSIGN_OR_RETURN(const snapshot::SaveReport saved, saver.save(*frozen, flags.to));
  DW_ASSIGN_OR_RETURN(const NextLogits next, next_logits(engine, frozen->sessions.at(0)));
  const nlohmann::json line = {
      {"hash", saved.hash}, {"rows", rows}, {"logits", next.digest}, {"next_rows", next.rows}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  for (;;) ::pause();  // whoever started it kills it
}

}  // namespace driftwood::cli
