// EventLoop: one actor's life: its instance, mailbox and handlers, one event after the other.
//
// Threads: run_slice() is entered by one pool thread at a time (the system sees to that); deliver(),
// request_stop(), status() and the waits may come from any thread. mutex_ guards what both sides touch and is
// held for a few instructions only, never while guest, engine or sink runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "actor/context.h"

namespace driftwood::actor {

class EventLoop;

// What the loop needs of the system around it. Thread-safe.
class LoopHost : public Post {
 public:
  // Puts an actor with work to do on the run queue.
  virtual void schedule(ActorId id) = 0;
  // When to wake an idle actor for its timers; takes the place of what was set before. Called with the
  // actor's lock held, before anybody else can run it: later a worker that runs it may have set another.
  virtual void set_alarm(ActorId id, std::optional<uint64_t> due_ns) = 0;
  // Delivers to a living actor; false: dropped.
  virtual bool deliver(ActorId target, Message message) = 0;
  // Do other actors wait for a thread? Then a slice ends after one event.
  virtual bool others_wait() const = 0;
  // A copy of `parent`, which is at rest on this thread, under that name; `tag` is told to both.
  virtual Result<ActorId> fork_at_rest(EventLoop& parent, const std::string& name, uint64_t stream,
                                       int64_t tag) = 0;
};

class EventLoop {
 public:
  // Instantiates the guest and looks up its handlers.
  static Result<std::shared_ptr<EventLoop>> create(wasm::Runtime& runtime,
                                                   std::shared_ptr<wasm::Module> module, ActorId id,
                                                   std::string name, ActorOptions options,
                                                   engine::Engine* engine, device::Device* device,
                                                   LoopHost* host);
  // The same from a frozen actor: what ActorSystem::thaw says.
  static Result<std::shared_ptr<EventLoop>> thaw(wasm::Runtime& runtime, std::shared_ptr<wasm::Module> module,
                                                 ActorId id, std::string name, const FrozenActor& frozen,
                                                 ActorOptions options, engine::Engine* engine,
                                                 device::Device* device, LoopHost* host);
  ~EventLoop();

  ActorId id() const { return context_.id; }
  const std::string& name() const { return context_.name; }
  const ActorLimits& limits() const { return context_.options.limits; }

  enum class SliceEnd { kMore, kIdle, kEnded };
  // Runs events until there are none, or others wait for the thread. After kIdle another thread may be
  // running it.
  SliceEnd run_slice();

  // From outside. Each schedules the actor if it was idle.
  Status deliver(Message message);
  Status check_room(uint64_t length, size_t staged) const;
  void request_stop();
  void interrupt();  // breaks a running handler off
  void wake();       // a timer may be due
  void hold_at(const HoldPoint& point);

  // Whether it would find no event and set no alarm. Before anybody else knows of it.
  bool has_nothing_to_do() const;

  // Runs `job` at the next rest point: at once on this thread if the actor is idle, else on the one that runs
  // it, and waits. not_found: it has ended. Not from the actor's own thread.
  Status at_rest(const std::function<Status()>& job);
  // At rest only (inside at_rest, or between events on the actor's thread).
  Result<std::shared_ptr<FrozenActor>> freeze();
  struct ForkAs {
    ActorId id = 0;
    std::string name;
    uint64_t stream = 0;
    std::optional<int64_t> tag;  // told to the child, if it was the guest that asked
  };
  Result<std::shared_ptr<EventLoop>> fork(wasm::Runtime& runtime, const ForkAs& as);

  // After SliceEnd::kEnded: lets the waits return. The system has forgotten the actor by then, so that
  // whoever waited can use its name again.
  void announce_end();

  ActorStatus status() const;
  // ok: idle or ended well; the trap's status; deadline_exceeded.
  Status wait_idle(std::chrono::milliseconds timeout) const;
  Status wait_exit(std::chrono::milliseconds timeout) const;

 private:
  EventLoop(ActorId id, std::string name, ActorOptions options, engine::Engine* engine,
            device::Device* device, LoopHost* host)
      : context_(id, std::move(name), std::move(options), engine, device, host), host_(host) {}

  Status instantiate(wasm::Runtime& runtime, std::shared_ptr<wasm::Module> module);
  // What instantiate and restore have in common, once there is an instance.
  Status open();
  // Gives back what a loop that never ran has taken.
  void abandon();

  // freeze.cc, thaw.cc
  Status can_freeze() const;
  ActorLife life() const;
  void adopt(const ActorLife& life);
  Status thaw_sessions(const FrozenActor& frozen);
  Status fork_sessions(const EventLoop& parent, uint64_t stream);

  // event_loop_rest.cc
  struct RestJob {
    const std::function<Status()>* run;
    Status result;
    bool done = false;
  };
  void run_rest_jobs();
  void refuse_rest_jobs_locked();
  bool held() const {
    return context_.tokens_generated >= hold_tokens_.load(std::memory_order_relaxed) ||
           handlers_run_ >= hold_handlers_.load(std::memory_order_relaxed);
  }
  void run_state_requests();
  Status resolve_handlers(const wasm::ModuleReport& report);

  // One event, if there is one. False: nothing to do.
  bool run_event();
  // The event whose turn it is, if there is one: *ran.
  Status run_next(bool has_message, bool* ran);
  bool take_stop_or_message(bool* stop);
  Status run_token();
  Status finish_token(const Generate& generate, int32_t token, int64_t position, int32_t verdict);
  Status run_done();
  // Calls a resolved handler; -1 as `handle` does nothing. The result, if any, goes to *result.
  Status call_handler(Handler kind, int handle, std::span<const uint64_t> args, uint64_t* result);
  void end_generate(const Generate& generate, DoneReason reason, std::string message);
  bool is_end_token(int32_t token) const;

  void commit_effects();
  void publish_locked();  // copies the figures of this rest point into status_
  void end(ActorState state, Status status);
  bool go_idle();  // false: work came in

  ActorContext context_;
  LoopHost* const host_;
  std::shared_ptr<wasm::Module> module_;
  std::unique_ptr<wasm::Instance> instance_;
  bool started_ = false;
  bool command_ = false;  // has `_start` (in on_start_) and no handlers
  int on_start_ = -1, on_message_ = -1, on_token_ = -1, on_done_ = -1, on_timer_ = -1, on_fork_ = -1;
  uint64_t epoch_ = 1;
  uint64_t sequence_ = 0;
  uint64_t handlers_run_ = 0;
  uint64_t messages_dropped_ = 0;
  uint64_t memory_bytes_ = 0;
  std::string parent_;  // the snapshot it comes from
  // Digests of the memory's image, as long as that is still the image.
  std::shared_ptr<const void> digests_of_;
  std::shared_ptr<const std::vector<snapshot::Digest>> image_digests_;
  std::atomic<int64_t> hold_tokens_{HoldPoint().tokens_generated};
  std::atomic<uint64_t> hold_handlers_{HoldPoint().handlers_run};
  bool was_held_ = false;  // when this thread last looked

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Message> mailbox_;
  std::vector<RestJob*> rest_jobs_;
  bool scheduled_ = false;  // queued, running, or at rest for a job
  bool stop_requested_ = false;
  bool announced_ = false;
  ActorStatus status_;
};

}  // namespace driftwood::actor
