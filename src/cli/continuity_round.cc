// The driver of a round: warm, cold and forked in this process, restored and moved in chains of others.
#include <filesystem>

#include <nlohmann/json.hpp>

#include "actor/actor_saver.h"
#include "actor/compare.h"
#include "cli/continuity.h"
#include "os/child_process.h"

namespace driftwood::cli {
namespace {

constexpr int kChildTimeoutMs = 300'000;

// What warm is like at a rest point, and what its next step gives.
struct Truth {
  std::shared_ptr<actor::FrozenActor> actor;
  std::string next;
};

// What a link of a chain said before it was killed.
struct Link {
  std::string hash;
  std::string next;
  int64_t rows = 0;
  int64_t next_rows = 0;
};

class Round {
 public:
  Round(ActorHost& host, const ContinuityFlags& flags, const ContinuityRound& round, std::string folder,
        ContinuityFigures* figures)
      : host_(host), flags_(flags), round_(round), folder_(std::move(folder)), figures_(figures) {}

  Status run();
  void stop_all();

 private:
  engine::Engine& engine() { return *host_.opened().engine; }
  Status start();
  Status cross(int boundary);
  Status cross_here(int boundary, const Truth& truth, int64_t expected_rows);
  Status cross_cold_prefill(int boundary, const Truth& truth);
  Status cross_chains(int boundary, const Truth& truth, int64_t expected_rows);
  Status check(const std::string& way, int boundary, const Truth& truth, const actor::FrozenActor& other,
               const std::string& other_next);
  void differs(const std::string& way, int boundary, const std::string& what);
  bool failed() const { return !figures_->first_difference.empty(); }

  Result<Link> step_process(const std::string& store, const std::string& from, const std::string& to,
                            const std::string& isa, int threads);
  Result<std::shared_ptr<actor::FrozenActor>> saved_in(const std::string& store, const std::string& hash);
  // Exports from one store and imports into a new one, elsewhere.
  Result<std::string> move_on(const std::string& store, const std::string& name, int boundary);
  std::string moved_isa(int boundary) const;

  ActorHost& host_;
  const ContinuityFlags& flags_;
  const ContinuityRound round_;
  const std::string folder_;
  ContinuityFigures* const figures_;
  actor::ActorId warm_ = 0;
  actor::ActorId cold_ = 0;
  std::vector<actor::ActorId> beside_;
  std::string moved_store_;
};

void Round::differs(const std::string& way, int boundary, const std::string& what) {
  if (failed()) return;
  figures_->first_difference = std::string(round_.sampled ? "sampled" : "greedy") +
                               (round_.beside > 0 ? " beside others" : " alone") + ", boundary " +
                               std::to_string(boundary) + ", " + way + ": " + what;
}

Status Round::check(const std::string& way, int boundary, const Truth& truth, const actor::FrozenActor& other,
                    const std::string& other_next) {
  DW_ASSIGN_OR_RETURN(const std::string what, actor::first_difference(*truth.actor, other));
  ++figures_->comparisons;
  if (!what.empty()) differs(way, boundary, what);
  if (other_next != truth.next) differs(way, boundary, "logits of the next step");
  return Status::ok();
}

std::string Round::moved_isa(int boundary) const {
  static const std::vector<std::string> usable = [this] {
    std::vector<std::string> all;
    for (const char* isa : {"ref", "avx2", "avxvnni", "avx512", "neon"}) {
      EngineFlags flags = flags_.host.engine;
      flags.isa = isa;
      if (open_device(flags).is_ok()) all.emplace_back(isa);
    }
    return all;
  }();
  // `ref` computes a few tokens a second: alone it takes its turn, beside others every fourth boundary.
  const std::string& turn = usable[static_cast<size_t>(boundary + 1) % usable.size()];
  return turn == "ref" && round_.beside > 0 && boundary % 4 != 3 ? usable.back() : turn;
}

Result<Link> Round::step_process(const std::string& store, const std::string& from, const std::string& to,
                                 const std::string& isa, int threads) {
  DW_ASSIGN_OR_RETURN(const std::string program, os::executable_path());
  const EngineFlags& e = flags_.host.engine;
  std::vector<std::string> argv = {program,
                                   "continuity-step",
                                   "--model",
                                   e.model,
                                   "--kv",
                                   e.kv,
                                   "--store",
                                   store,
                                   "--to",
                                   to,
                                   "--prompt-tokens",
                                   std::to_string(flags_.prompt_tokens),
                                   "--beside",
                                   std::to_string(round_.beside),
                                   "--threads",
                                   std::to_string(threads)};
  if (!from.empty()) argv.insert(argv.end(), {"--from", from});
  if (round_.sampled) argv.emplace_back("--sampled");
  if (e.max_context > 0) argv.insert(argv.end(), {"--context", std::to_string(e.max_context)});
  if (e.no_cache) argv.emplace_back("--no-cache");
  std::vector<std::pair<std::string, std::string>> environment;
  if (!isa.empty()) environment.emplace_back("DRIFTWOOD_CPU", isa);
  DW_ASSIGN_OR_RETURN(os::ChildProcess child, os::ChildProcess::start(argv, environment));
  const Result<std::string> line = child.read_line(kChildTimeoutMs);
  child.kill_hard();
  ++figures_->kills;
  if (!line.is_ok())
    return line.status().with_context("the process that goes from '" + from + "' to '" + to + "'");
  const nlohmann::json said = nlohmann::json::parse(*line, nullptr, false);
  if (!said.is_object() || !said.contains("hash"))
    return internal_error("a child process said '" + *line + "'");
  return Link{said["hash"], said["logits"], said["rows"], said["next_rows"]};
}

Result<std::shared_ptr<actor::FrozenActor>> Round::saved_in(const std::string& path,
                                                            const std::string& hash) {
  DW_ASSIGN_OR_RETURN(const auto store, snapshot::Store::open(path, {false, true, 1}));
  DW_ASSIGN_OR_RETURN(const auto stored, store->load(hash));
  return actor::read_actor(stored);
}

Result<std::string> Round::move_on(const std::string& store_path, const std::string& name, int boundary) {
  const std::string away = folder_ + "/away" + std::to_string(boundary);
  std::filesystem::create_directories(away);
  const std::string file = folder_ + "/moving.dwsnap";
  DW_ASSIGN_OR_RETURN(const auto from, snapshot::Store::open(store_path, {false, true, 2}));
  DW_ASSIGN_OR_RETURN(const auto exported, from->export_file(name, file));
  static_cast<void>(exported);
  std::filesystem::copy_file(file, away + "/arrived.dwsnap");
  std::filesystem::remove(file);
  const std::string store = away + "/store";
  DW_ASSIGN_OR_RETURN(const auto to, snapshot::Store::open(store, {true, false, 2}));
  DW_ASSIGN_OR_RETURN(const auto imported, to->import_file(away + "/arrived.dwsnap", name));
  static_cast<void>(imported);
  return store;
}

Status Round::start() {
  std::filesystem::create_directories(folder_);
  const int p = flags_.prompt_tokens;
  DW_ASSIGN_OR_RETURN(warm_, start_continuity_actor(host_, "warm", p, round_.sampled, 0, kHandlersBefore));
  DW_ASSIGN_OR_RETURN(cold_, start_continuity_actor(host_, "cold", p, round_.sampled, 0, kHandlersBefore));
  for (int i = 0; i < round_.beside; ++i) {
    DW_ASSIGN_OR_RETURN(const actor::ActorId id,
                        start_continuity_actor(host_, "beside" + std::to_string(i), kPromptBeside, true,
                                               i + 1, kHandlersBefore));
    beside_.push_back(id);
  }
  // The chains begin with an actor of their own.
  Truth truth;
  DW_ASSIGN_OR_RETURN(truth.actor, host_.system().freeze(warm_));
  DW_ASSIGN_OR_RETURN(const NextLogits next, next_logits(engine(), truth.actor->sessions.at(0)));
  truth.next = next.digest;
  moved_store_ = folder_ + "/first";
  for (const bool moved : {false, true}) {
    const std::string store = moved ? moved_store_ : folder_ + "/restored";
    DW_ASSIGN_OR_RETURN(const Link link, step_process(store, "", "at0", "", flags_.host.engine.threads));
    DW_ASSIGN_OR_RETURN(const auto other, saved_in(store, link.hash));
    DW_RETURN_IF_ERROR(check(moved ? "moved" : "restored", -1, truth, *other, link.next));
  }
  return Status::ok();
}

Status Round::cross_cold_prefill(int boundary, const Truth& truth) {
  // A session that computes every token in one prefill: ids, KV and logits.
  const engine::FrozenSession& wanted = truth.actor->sessions.at(0);
  DW_ASSIGN_OR_RETURN(const engine::SessionId id, engine().open({wanted.max_tokens, wanted.sampling}));
  Status status = engine().append(id, std::span(wanted.tokens).first(static_cast<size_t>(wanted.computed)));
  if (status.is_ok()) status = engine().step(id);
  if (status.is_ok())
    status = engine().append(id, std::span(wanted.tokens).subspan(static_cast<size_t>(wanted.computed)));
  Result<engine::FrozenSession> frozen =
      status.is_ok() ? engine().freeze(id) : Result<engine::FrozenSession>(status);
  const Status closed = engine().close(id);
  DW_RETURN_IF_ERROR(frozen.status());
  DW_RETURN_IF_ERROR(closed);
  DW_ASSIGN_OR_RETURN(const NextLogits next, next_logits(engine(), *frozen));
  actor::FrozenActor other = *truth.actor;
  other.sessions.at(0) = *frozen;
  return check("cold prefill", boundary, truth, other, next.digest);
}

Status Round::cross_here(int boundary, const Truth& truth, int64_t expected_rows) {
  for (const auto& [way, id] :
       {std::pair<const char*, actor::ActorId>{"cold", cold_},
        std::pair<const char*, actor::ActorId>{"forked", actor::actor_id_of("forked")}}) {
    DW_RETURN_IF_ERROR(run_to_handlers(host_, id, truth.actor->life.handlers_run));
    DW_ASSIGN_OR_RETURN(const auto other, host_.system().freeze(id));
    DW_ASSIGN_OR_RETURN(const NextLogits next, next_logits(engine(), other->sessions.at(0)));
    DW_RETURN_IF_ERROR(check(way, boundary, truth, *other, next.digest));
    if (id == cold_) continue;
    DW_ASSIGN_OR_RETURN(const int64_t rows, rows_of(engine(), *other));
    figures_->tokens_recomputed += rows - expected_rows;
  }
  DW_RETURN_IF_ERROR(host_.system().stop(actor::actor_id_of("forked")));
  return Status::ok();
}

Status Round::cross_chains(int boundary, const Truth& truth, int64_t expected_rows) {
  const std::string from = "at" + std::to_string(boundary);
  const std::string to = "at" + std::to_string(boundary + 1);
  const std::string previous = moved_store_;
  DW_ASSIGN_OR_RETURN(moved_store_, move_on(previous, from, boundary));
  for (const bool moved : {false, true}) {
    const std::string store = moved ? moved_store_ : folder_ + "/restored";
    DW_ASSIGN_OR_RETURN(const Link link, step_process(store, from, to, moved ? moved_isa(boundary) : "",
                                                      moved ? 1 + boundary % 2 : flags_.host.engine.threads));
    DW_ASSIGN_OR_RETURN(const auto other, saved_in(store, link.hash));
    DW_RETURN_IF_ERROR(check(moved ? "moved" : "restored", boundary, truth, *other, link.next));
    figures_->tokens_recomputed += link.rows - expected_rows;
  }
  std::filesystem::remove_all(std::filesystem::path(previous).parent_path() == folder_
                                  ? std::filesystem::path(previous)
                                  : std::filesystem::path(previous).parent_path());
  return Status::ok();
}

Status Round::cross(int boundary) {
  DW_ASSIGN_OR_RETURN(const auto before, host_.system().freeze(warm_));
  DW_ASSIGN_OR_RETURN(const int64_t rows_before, rows_of(engine(), *before));
  const engine::FrozenSession& session = before->sessions.at(0);
  const int64_t pending = static_cast<int64_t>(session.tokens.size()) - session.computed;
  DW_ASSIGN_OR_RETURN(const actor::ActorId fork, host_.system().fork(warm_, "forked", 0));
  static_cast<void>(fork);
  const uint64_t handlers = before->life.handlers_run + 1;
  for (const actor::ActorId other : beside_) {
    actor::HoldPoint point;
    point.handlers_run = handlers + static_cast<uint64_t>(kTokensBeside * (boundary + 1));
    DW_RETURN_IF_ERROR(host_.system().hold_at(other, point));
  }
  DW_RETURN_IF_ERROR(run_to_handlers(host_, warm_, handlers));
  Truth truth;
  DW_ASSIGN_OR_RETURN(truth.actor, host_.system().freeze(warm_));
  DW_ASSIGN_OR_RETURN(const int64_t rows_after, rows_of(engine(), *truth.actor));
  figures_->tokens_recomputed += rows_after - rows_before - pending;
  DW_ASSIGN_OR_RETURN(const NextLogits next, next_logits(engine(), truth.actor->sessions.at(0)));
  truth.next = next.digest;
  DW_RETURN_IF_ERROR(cross_here(boundary, truth, pending));
  DW_RETURN_IF_ERROR(cross_cold_prefill(boundary, truth));
  return cross_chains(boundary, truth, pending);
}

Status Round::run() {
  DW_RETURN_IF_ERROR(start());
  for (int boundary = 0; boundary < flags_.boundaries && !failed(); ++boundary) {
    DW_RETURN_IF_ERROR(cross(boundary));
    ++figures_->boundaries;
  }
  return Status::ok();
}

void Round::stop_all() {
  for (const actor::ActorStatus& status : host_.system().list()) {
    static_cast<void>(host_.system().stop(status.id));
  }
}

}  // namespace

Status run_continuity_round(ActorHost& host, const ContinuityFlags& flags, const ContinuityRound& round,
                            const std::string& folder, ContinuityFigures* figures) {
  Round one(host, flags, round, folder, figures);
  const Status status = one.run();
  one.stop_all();
  return status;
}

}  // namespace driftwood::cli
