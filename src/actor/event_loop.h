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

// What the loop needs of the system around it. Thread-safe.
class LoopHost : public Post {
 public:
  // Puts an actor with work to do on the run queue.
  virtual void schedule(ActorId id) = 0;
  // Delivers to a living actor; false: dropped.
  virtual bool deliver(ActorId target, Message message) = 0;
  // Do other actors wait for a thread? Then a slice ends after one event.
  virtual bool others_wait() const = 0;
};

class EventLoop {
 public:
  // Instantiates the guest and looks up its handlers.
  static Result<std::shared_ptr<EventLoop>> create(wasm::Runtime& runtime,
                                                   std::shared_ptr<wasm::Module> module, ActorId id,
                                                   std::string name, ActorOptions options,
                                                   engine::Engine* engine, device::Device* device,
                                                   LoopHost* host);
  ~EventLoop();

  ActorId id() const { return context_.id; }
  const std::string& name() const { return context_.name; }
  const ActorLimits& limits() const { return context_.options.limits; }

  enum class SliceEnd { kMore, kIdle, kEnded };
  struct Slice {
    SliceEnd end = SliceEnd::kIdle;
    std::optional<uint64_t> next_timer_ns;  // kIdle: when to schedule it again
  };
  // Runs events until there are none, or others wait for the thread.
  Slice run_slice();

  // From outside. Each schedules the actor if it was idle.
  Status deliver(Message message);
  Status check_room(uint64_t length, size_t staged) const;
  void request_stop();
  void interrupt();  // breaks a running handler off
  void wake();       // a timer may be due

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
  Status resolve_handlers(const wasm::ModuleReport& report);

  // One event, if there is one. False: nothing to do.
  bool run_event();
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
  std::unique_ptr<wasm::Instance> instance_;
  bool started_ = false;
  bool command_ = false;  // has `_start` (in on_start_) and no handlers
  int on_start_ = -1, on_message_ = -1, on_token_ = -1, on_done_ = -1, on_timer_ = -1;
  uint64_t epoch_ = 1;
  uint64_t sequence_ = 0;
  uint64_t handlers_run_ = 0;
  uint64_t messages_dropped_ = 0;
  uint64_t memory_bytes_ = 0;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Message> mailbox_;
  bool scheduled_ = false;  // queued or running
  bool stop_requested_ = false;
  bool announced_ = false;
  ActorStatus status_;
};

}  // namespace driftwood::actor
