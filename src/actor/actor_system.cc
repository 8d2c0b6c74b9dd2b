// ActorSystem: the registry of actors and the bounded pool of threads that runs their events.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include "actor/event_loop.h"
#include "base/sha256.h"

namespace driftwood::actor {
namespace {

constexpr size_t kRememberedEnds = 1024;
constexpr int kLeastThreads = 8;
constexpr std::chrono::milliseconds kStopGrace{1000};

class System final : public ActorSystem, private LoopHost {
 public:
  System(std::shared_ptr<wasm::Runtime> runtime, engine::Engine* engine, device::Device* device, int threads)
      : runtime_(std::move(runtime)), engine_(engine), device_(device) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }

  ~System() override {
    for (const std::shared_ptr<EventLoop>& loop : living()) loop->request_stop();
    for (const std::shared_ptr<EventLoop>& loop : living()) end(*loop);
    {
      const std::lock_guard lock(queue_mutex_);
      closing_ = true;
    }
    queue_changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Result<ActorId> spawn(const std::string& name, std::shared_ptr<wasm::Module> module,
                        ActorOptions options) override;
  Result<ActorId> thaw(const std::string& name, const FrozenActor& frozen,
                       std::shared_ptr<wasm::Module> module, ActorOptions options) override {
    return enroll(name, [&](ActorId id) {
      return EventLoop::thaw(*runtime_, std::move(module), id, name, frozen, std::move(options), engine_,
                             device_, this);
    });
  }
  Result<std::shared_ptr<FrozenActor>> freeze(ActorId id) override;
  Result<ActorId> fork(ActorId id, const std::string& name, uint64_t stream) override;
  Status hold_at(ActorId id, const HoldPoint& point) override {
    const std::shared_ptr<EventLoop> loop = get(id);
    if (loop == nullptr) return gone(id);
    loop->hold_at(point);
    return Status::ok();
  }
  Status send(ActorId id, std::span<const uint8_t> bytes) override {
    const std::shared_ptr<EventLoop> loop = get(id);
    if (loop == nullptr) return gone(id);
    return loop->deliver({kOutside, 0, 0, {bytes.begin(), bytes.end()}});
  }
  Status stop(ActorId id) override {
    if (const std::shared_ptr<EventLoop> loop = get(id)) {
      loop->request_stop();
      end(*loop);
      return Status::ok();
    }
    return ended_status(id).is_ok() ? Status::ok() : unknown(id);
  }
  Status wait_idle(ActorId id, std::chrono::milliseconds timeout) override {
    if (const std::shared_ptr<EventLoop> loop = get(id)) return loop->wait_idle(timeout);
    const Result<ActorStatus> ended = ended_status(id);
    return ended.is_ok() ? ended->status : ended.status();
  }
  Status wait_exit(ActorId id, std::chrono::milliseconds timeout) override {
    if (const std::shared_ptr<EventLoop> loop = get(id)) return loop->wait_exit(timeout);
    const Result<ActorStatus> ended = ended_status(id);
    return ended.is_ok() ? ended->status : ended.status();
  }
  Result<ActorStatus> status(ActorId id) const override {
    if (const std::shared_ptr<EventLoop> loop = get(id)) return loop->status();
    return ended_status(id);
  }
  Result<ActorId> find(std::string_view name) const override { return find_receiver(name); }
  std::vector<ActorStatus> list() const override {
    std::vector<ActorStatus> all;
    for (const std::shared_ptr<EventLoop>& loop : living()) all.push_back(loop->status());
    return all;
  }

 private:
  // LoopHost
  Result<ActorId> find_receiver(std::string_view name) const override {
    const std::shared_lock lock(registry_mutex_);
    const auto it = by_name_.find(name);
    if (it == by_name_.end()) return not_found("no actor is named '" + std::string(name) + "'");
    return it->second;
  }
  Status check_receiver(ActorId id, uint64_t length, size_t staged) const override {
    const std::shared_ptr<EventLoop> loop = get(id);
    return loop == nullptr ? unknown(id) : loop->check_room(length, staged);
  }
  void schedule(ActorId id) override {
    {
      const std::lock_guard lock(queue_mutex_);
      queue_.push_back(id);
      waiting_.store(queue_.size(), std::memory_order_relaxed);
    }
    queue_changed_.notify_one();
  }
  bool deliver(ActorId target, Message message) override {
    const std::shared_ptr<EventLoop> loop = get(target);
    return loop != nullptr && loop->deliver(std::move(message)).is_ok();
  }
  Result<ActorId> fork_at_rest(EventLoop& parent, const std::string& name, uint64_t stream,
                               int64_t tag) override {
    return fork_as(parent, name, stream, tag);
  }
  bool others_wait() const override { return waiting_.load(std::memory_order_relaxed) != 0; }

  // Why an actor cannot be reached: never there, or how it ended.
  Status gone(ActorId id) const {
    const Result<ActorStatus> ended = ended_status(id);
    if (!ended.is_ok()) return unknown(id);
    if (!ended->status.is_ok()) return ended->status;
    std::string how(actor_state_name(ended->state));
    if (ended->state == ActorState::kExited) how += " with code " + std::to_string(ended->exit_code);
    return not_found("actor '" + ended->name + "' has ended: " + how);
  }
  static Status unknown(ActorId id) { return not_found("there is no actor " + std::to_string(id)); }
  std::shared_ptr<EventLoop> get(ActorId id) const {
    const std::shared_lock lock(registry_mutex_);
    const auto it = actors_.find(id);
    return it == actors_.end() ? nullptr : it->second;
  }
  Result<ActorStatus> ended_status(ActorId id) const {
    const std::shared_lock lock(registry_mutex_);
    const auto it =
        std::find_if(ended_.rbegin(), ended_.rend(), [&](const ActorStatus& s) { return s.id == id; });
    if (it == ended_.rend()) return unknown(id);
    return *it;
  }
  std::vector<std::shared_ptr<EventLoop>> living() const {
    const std::shared_lock lock(registry_mutex_);
    std::vector<std::shared_ptr<EventLoop>> all;
    for (const auto& [id, loop] : actors_) all.push_back(loop);
    return all;
  }
  // After request_stop(): waits for the handler that may run, for a while politely.
  static void end(EventLoop& loop) {
    if (loop.wait_exit(kStopGrace).code() != Code::kDeadlineExceeded) return;
    loop.interrupt();
    static_cast<void>(loop.wait_exit(std::chrono::hours(24)));
  }
  void retire(const EventLoop& loop);
  // Reserves the name, makes the actor, and lets it run.
  using Maker = std::function<Result<std::shared_ptr<EventLoop>>(ActorId id)>;
  Result<ActorId> enroll(const std::string& name, const Maker& make);
  Result<ActorId> fork_as(EventLoop& parent, const std::string& name, uint64_t stream,
                          std::optional<int64_t> tag) {
    return enroll(name, [&](ActorId id) { return parent.fork(*runtime_, {id, name, stream, tag}); });
  }

  // Pool
  void work();
  ActorId next_locked(std::unique_lock<std::mutex>& lock);
  void run(ActorId id);
  void set_alarm(ActorId id, std::optional<uint64_t> due_ns) override;

  const std::shared_ptr<wasm::Runtime> runtime_;
  engine::Engine* const engine_;
  device::Device* const device_;

  mutable std::shared_mutex registry_mutex_;
  std::map<ActorId, std::shared_ptr<EventLoop>> actors_;
  std::map<std::string, ActorId, std::less<>> by_name_;
  std::deque<ActorStatus> ended_;

  std::mutex queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<ActorId> queue_;
  std::atomic<size_t> waiting_{0};                 // queue_.size(), to be read without the lock
  std::set<std::pair<uint64_t, ActorId>> alarms_;  // (due, actor), at most one per actor
  std::unordered_map<ActorId, uint64_t> alarm_of_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

Result<ActorId> System::spawn(const std::string& name, std::shared_ptr<wasm::Module> module,
                              ActorOptions options) {
  return enroll(name, [&](ActorId id) {
    return EventLoop::create(*runtime_, std::move(module), id, name, std::move(options), engine_, device_,
                             this);
  });
}

Result<std::shared_ptr<FrozenActor>> System::freeze(ActorId id) {
  const std::shared_ptr<EventLoop> loop = get(id);
  if (loop == nullptr) return gone(id);
  std::shared_ptr<FrozenActor> frozen;
  DW_RETURN_IF_ERROR(loop->at_rest([&] {
    DW_ASSIGN_OR_RETURN(frozen, loop->freeze());
    return Status::ok();
  }));
  return frozen;
}

Result<ActorId> System::fork(ActorId id, const std::string& name, uint64_t stream) {
  const std::shared_ptr<EventLoop> loop = get(id);
  if (loop == nullptr) return gone(id);
  ActorId child = 0;
  DW_RETURN_IF_ERROR(loop->at_rest([&] {
    DW_ASSIGN_OR_RETURN(child, fork_as(*loop, name, stream, std::nullopt));
    return Status::ok();
  }));
  return child;
}

Result<ActorId> System::enroll(const std::string& name, const Maker& make) {
  constexpr size_t kMaxName = 256;
  if (name.empty() || name.size() > kMaxName) return invalid_argument("an actor's name has 1 to 256 bytes");
  const ActorId id = actor_id_of(name);
  {
    const std::lock_guard lock(registry_mutex_);
    if (by_name_.contains(name)) return already_exists("an actor named '" + name + "' is alive");
    if (const auto it = actors_.find(id); it != actors_.end()) {
      return already_exists("the name '" + name + "' has the id of actor '" + it->second->name() + "'");
    }
    by_name_.emplace(name, id);  // the name is taken from here on; messages find nobody yet
  }
  Result<std::shared_ptr<EventLoop>> loop = make(id);
  const bool waits = loop.is_ok() && (*loop)->has_nothing_to_do();  // most that are restored or forked
  {
    const std::lock_guard lock(registry_mutex_);
    if (!loop.is_ok()) {
      by_name_.erase(name);
      return loop.status();
    }
    actors_.emplace(id, *loop);
  }
  if (!waits) (*loop)->wake();
  return id;
}

void System::retire(const EventLoop& loop) {
  const std::lock_guard lock(registry_mutex_);
  ended_.push_back(loop.status());
  if (ended_.size() > kRememberedEnds) ended_.pop_front();
  by_name_.erase(loop.name());
  actors_.erase(loop.id());
}

void System::work() {
  std::unique_lock lock(queue_mutex_);
  for (;;) {
    const ActorId id = next_locked(lock);
    if (id == 0) return;
    lock.unlock();
    run(id);
    lock.lock();
  }
}

// The next actor with work, 0 when the system closes. Due alarms wake their actors on the way.
ActorId System::next_locked(std::unique_lock<std::mutex>& lock) {
  bool watched = false;  // the next alarm; the other workers may all wait without one
  for (;;) {
    if (!queue_.empty()) {
      const ActorId id = queue_.front();
      queue_.pop_front();
      waiting_.store(queue_.size(), std::memory_order_relaxed);
      // Another must watch now: which waiter a notify wakes is not said.
      if (watched && !alarms_.empty()) queue_changed_.notify_one();
      return id;
    }
    if (closing_) return 0;
    if (alarms_.empty()) {
      queue_changed_.wait(lock);
      continue;
    }
    const uint64_t now_ns = host_monotonic_ns();
    const auto [due_ns, id] = *alarms_.begin();
    if (due_ns > now_ns) {
      constexpr uint64_t kLongestWait = 3600'000'000'000;
      watched = true;
      queue_changed_.wait_for(lock, std::chrono::nanoseconds(std::min(due_ns - now_ns, kLongestWait)));
      continue;
    }
    alarms_.erase(alarms_.begin());
    alarm_of_.erase(id);
    lock.unlock();
    if (const std::shared_ptr<EventLoop> loop = get(id)) loop->wake();
    lock.lock();
  }
}

void System::set_alarm(ActorId id, std::optional<uint64_t> due_ns) {
  {
    const std::lock_guard lock(queue_mutex_);
    const auto old = alarm_of_.find(id);
    if (old != alarm_of_.end()) {
      alarms_.erase({old->second, id});
      alarm_of_.erase(old);
    }
    if (!due_ns) return;
    alarm_of_.emplace(id, *due_ns);
    alarms_.emplace(*due_ns, id);
  }
  queue_changed_.notify_one();  // somebody must wait for the new alarm
}

void System::run(ActorId id) {
  const std::shared_ptr<EventLoop> loop = get(id);
  if (loop == nullptr) return;
  switch (loop->run_slice()) {
    case EventLoop::SliceEnd::kMore:
      schedule(id);
      break;
    case EventLoop::SliceEnd::kEnded:
      set_alarm(id, std::nullopt);
      retire(*loop);
      loop->announce_end();
      break;
    case EventLoop::SliceEnd::kIdle:
      break;
  }
}

}  // namespace

std::unique_ptr<ActorSystem> ActorSystem::create(std::shared_ptr<wasm::Runtime> runtime,
                                                 engine::Engine* engine, device::Device* device,
                                                 const ActorSystemOptions& options) {
  int threads = options.threads;
  if (threads <= 0)
    threads = std::max(kLeastThreads, 2 * static_cast<int>(std::thread::hardware_concurrency()));
  return std::make_unique<System>(std::move(runtime), engine, device, threads);
}

ActorId actor_id_of(std::string_view name) {
  const Sha256Digest digest = sha256({reinterpret_cast<const uint8_t*>(name.data()), name.size()});
  ActorId id = 0;
  for (int i = 0; i < 8; ++i) id |= static_cast<ActorId>(digest[static_cast<size_t>(i)]) << (8 * i);
  id &= std::numeric_limits<int64_t>::max();  // guests see it as i64, where negative means an error
  return id == kOutside ? 1 : id;
}

std::string_view actor_state_name(ActorState state) {
  switch (state) {
    case ActorState::kBusy:
      return "busy";
    case ActorState::kIdle:
      return "idle";
    case ActorState::kExited:
      return "exited";
    case ActorState::kStopped:
      return "stopped";
    case ActorState::kTrapped:
      return "trapped";
  }
  return "?";
}

}  // namespace driftwood::actor
