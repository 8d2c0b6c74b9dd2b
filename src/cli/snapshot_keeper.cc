#include "cli/snapshot_keeper.h"

#include <charconv>
#include <cstdio>
#include <utility>

#include "cli/checks.h"
#include "cli/printing.h"

namespace driftwood::cli {

void add_keep_flags(CLI::App* cmd, KeepFlags* flags) {
  add_store_flag(cmd, &flags->store);
  cmd->add_option(
         "--snapshot-every", flags->every,
         "Save a snapshot after every N generated tokens (a number), every turn (turn), or at the end "
         "(on-exit)")
      ->check(not_empty());
  cmd->add_option("--snapshot-name", flags->name, "Name of the snapshots; the actor's if not given");
}

Result<std::unique_ptr<SnapshotKeeper>> SnapshotKeeper::open(const KeepFlags& flags,
                                                             const std::string& actor) {
  std::unique_ptr<snapshot::Store> store;
  if (!flags.wanted() && !flags.name.empty()) {
    return invalid_argument("--snapshot-name needs --snapshot-every or --store: nothing would be saved");
  }
  if (flags.wanted()) {
    DW_ASSIGN_OR_RETURN(store, open_store(flags.store, StoreUse::kMake));
  }
  return create(std::move(store), flags, actor);
}

Result<std::unique_ptr<SnapshotKeeper>> SnapshotKeeper::create(std::unique_ptr<snapshot::Store> store,
                                                               const KeepFlags& flags,
                                                               const std::string& actor) {
  std::unique_ptr<SnapshotKeeper> keeper(new SnapshotKeeper());
  keeper->actor_ = actor;
  keeper->name_ = flags.name.empty() ? actor : flags.name;
  DW_RETURN_IF_ERROR(keeper->plan(flags));
  keeper->store_ = std::move(store);
  if (keeper->store_ != nullptr) {
    keeper->thread_ = std::thread([raw = keeper.get()] { raw->work(); });
  }
  return keeper;
}

Status SnapshotKeeper::plan(const KeepFlags& flags) {
  if (!flags.name.empty()) DW_RETURN_IF_ERROR(check_snapshot_name(flags.name, "--snapshot-name"));
  if (flags.every.empty()) return Status::ok();
  DW_RETURN_IF_ERROR(check_snapshot_name(name_, "the actor's name, for want of --snapshot-name"));
  if (flags.every == "turn") {
    schedule_ = Schedule::kTurn;
    return Status::ok();
  }
  if (flags.every == "on-exit") {
    schedule_ = Schedule::kOnExit;
    return Status::ok();
  }
  const char* end = flags.every.data() + flags.every.size();
  const auto [stop, error] = std::from_chars(flags.every.data(), end, every_tokens_);
  if (error != std::errc() || stop != end || every_tokens_ < 1) {
    return invalid_argument("--snapshot-every takes a number of tokens from 1, 'turn' or 'on-exit', not '" +
                            flags.every + "'");
  }
  schedule_ = Schedule::kTokens;
  return Status::ok();
}

SnapshotKeeper::~SnapshotKeeper() { static_cast<void>(finish()); }

actor::HoldPoint SnapshotKeeper::next_hold(int64_t tokens_generated) const {
  actor::HoldPoint point;
  if (schedule_ == Schedule::kTokens && every_tokens_ < point.tokens_generated - tokens_generated) {
    point.tokens_generated = tokens_generated + every_tokens_;
  }
  return point;
}

actor::CheckpointSink SnapshotKeeper::sink() {
  if (store_ == nullptr) return nullptr;
  return [this](const std::string& name, std::shared_ptr<actor::FrozenActor> frozen) -> Status {
    DW_ASSIGN_OR_RETURN(std::string under, name_for(name, *frozen));
    return submit({std::move(under), std::move(frozen), false});
  };
}

Result<std::string> SnapshotKeeper::name_for(const std::string& asked,
                                             const actor::FrozenActor& frozen) const {
  std::string name = asked;
  if (name.empty()) name = frozen.name == actor_ ? name_ : frozen.name;
  DW_RETURN_IF_ERROR(check_snapshot_name(name, asked.empty() ? "the actor's name" : "the name"));
  return name;
}

Status SnapshotKeeper::save_where_held(actor::ActorSystem& system, actor::ActorId id,
                                       const actor::ActorStatus& status) {
  freeze_and_submit(system, id, IfFull::kReplace);
  return system.hold_at(id, next_hold(status.tokens_generated));
}

void SnapshotKeeper::turn_ended(actor::ActorSystem& system, actor::ActorId id) {
  if (schedule_ == Schedule::kTurn) freeze_and_submit(system, id, IfFull::kWait);
}

void SnapshotKeeper::run_ended(actor::ActorSystem& system, actor::ActorId id,
                               const actor::ActorStatus& status) {
  if (schedule_ != Schedule::kOnExit) return;
  if (status.ended()) {
    return fail(
        failed_precondition("actor '" + status.name + "' has ended by itself: there is nothing to save"));
  }
  freeze_and_submit(system, id, IfFull::kWait);
}

void SnapshotKeeper::save_now(actor::ActorSystem& system, actor::ActorId id) {
  {
    const std::lock_guard lock(mutex_);
    tells_failures_ = false;
  }
  freeze_and_submit(system, id, IfFull::kWait);
}

void SnapshotKeeper::freeze_and_submit(actor::ActorSystem& system, actor::ActorId id, IfFull if_full) {
  Result<std::shared_ptr<actor::FrozenActor>> frozen = system.freeze(id);
  if (!frozen.is_ok()) return fail(frozen.status());
  Result<std::string> name = name_for("", **frozen);
  if (!name.is_ok()) return fail(name.status());
  const Status taken = submit({std::move(*name), std::move(*frozen), if_full == IfFull::kReplace});
  if (!taken.is_ok()) fail(taken);
}

Status SnapshotKeeper::submit(Job job) {
  std::unique_lock lock(mutex_);
  if (job.replaceable && waiting_ && waiting_->replaceable) {
    ++replaced_;
  } else {
    changed_.wait(lock, [&] { return !waiting_ || closing_; });
  }
  if (closing_) return unavailable("the run is over: nothing is kept any more");
  const std::optional<Job> replaced = std::exchange(waiting_, std::move(job));  // goes when the lock is free
  lock.unlock();
  changed_.notify_all();
  return Status::ok();
}

void SnapshotKeeper::fail(const Status& status) {
  constexpr uint64_t kMostTold = 5;
  const std::lock_guard lock(mutex_);
  if (++failures_ == 1) first_failure_ = status;
  if (tells_failures_ && failures_ <= kMostTold) {
    std::fprintf(stderr, "snapshot not saved: %s\n", printable(status.to_string()).c_str());
  }
}

void SnapshotKeeper::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return waiting_ || closing_; });
    if (!waiting_) return;
    std::optional<Job> job = std::exchange(waiting_, std::nullopt);
    lock.unlock();
    changed_.notify_all();
    save(*job);
    job.reset();  // gives back what it pins
    lock.lock();
  }
}

void SnapshotKeeper::save(const Job& job) {
  std::unique_ptr<actor::ActorSaver>& saver = savers_[job.frozen->name];
  if (saver == nullptr) saver = std::make_unique<actor::ActorSaver>(store_.get());
  Result<snapshot::SaveReport> report = saver->save(*job.frozen, job.name, notes_);
  if (!report.is_ok()) return fail(report.status().with_context("actor '" + job.frozen->name + "'"));
  report->digests.clear();  // large, and nobody asks for them
  const std::lock_guard lock(mutex_);
  kept_.push_back({job.name, std::move(*report)});
}

Status SnapshotKeeper::finish() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  savers_.clear();
  if (failures_ <= 1) return first_failure_;
  return first_failure_.with_context(std::to_string(failures_) + " snapshots were not saved; the first");
}

void note_kept(const SnapshotKeeper& keeper) {
  if (keeper.kept().empty()) return;
  const KeptSnapshot& last = keeper.kept().back();
  std::string more;
  if (keeper.replaced() > 0)
    more = "; " + std::to_string(keeper.replaced()) + " skipped, the disk was slower";
  std::fprintf(stderr, "note: %s saved, the last is %s, named '%s'%s\n",
               count_text(keeper.kept().size(), "snapshot", "snapshots").c_str(),
               short_hash(last.report.hash).c_str(), last.name.c_str(), more.c_str());
}

}  // namespace driftwood::cli
