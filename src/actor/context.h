// ActorContext: everything host calls see and change of one actor. The event loop (event_loop.h) owns it, and
// wasm::InstanceOptions::user points to it.
//
// Used by one thread at a time, the one that runs the handler; only Post leads out of it. Nothing here is
// visible to others before the loop commits the effects.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actor/actor.h"
#include "actor/draws.h"
#include "actor/effects.h"
#include "actor/frozen_actor.h"
#include "actor/generates.h"
#include "actor/message.h"
#include "actor/sessions.h"
#include "actor/timers.h"

namespace driftwood::actor {

// The way to other actors. Thread-safe.
class Post {
 public:
  virtual ~Post() = default;
  virtual Result<ActorId> find_receiver(std::string_view name) const = 0;
  // Could this message be delivered now? not_found, resource_exhausted.
  // `staged`: messages for it that this handler has sent already and that will be delivered before this one.
  virtual Status check_receiver(ActorId id, uint64_t length, size_t staged) const = 0;
};

enum class Handler : uint8_t { kNone, kStart, kMessage, kToken, kDone, kTimer, kFork };

// Guest memory that the device has been told of. On devices whose pointers are the host's own there is
// nothing to tell. Registered once per piece: a grown memory adds a piece, nothing is ever remapped.
class DeviceWindow {
 public:
  ~DeviceWindow();
  // Makes the memory's committed range usable by the device. Opens the actor's stream at the first use.
  Status open(device::Device* device, region::Region& memory);
  device::Stream& stream() { return *stream_; }
  // Waits for the device and takes the registrations back; before the memory is unmapped.
  void close();

 private:
  device::Device* device_ = nullptr;
  std::unique_ptr<device::Stream> stream_;
  std::vector<uint8_t*> pieces_;
  size_t registered_bytes_ = 0;
};

struct ActorContext {
  ActorContext(ActorId actor_id, std::string actor_name, ActorOptions actor_options, engine::Engine* e,
               device::Device* d, const Post* p)
      : id(actor_id),
        name(std::move(actor_name)),
        options(std::move(actor_options)),
        engine(e),
        device(d),
        post(p),
        sessions(options.limits.max_sessions),
        generates(options.limits.max_generates),
        timers(options.limits.max_timers),
        effects(options.limits.max_effect_bytes),
        draws(DrawState{options.seed}) {}

  const ActorId id;
  const std::string name;
  const ActorOptions options;
  engine::Engine* const engine;  // may be null
  device::Device* const device;  // may be null
  const Post* const post;

  Sessions sessions;
  Generates generates;
  Timers timers;
  Effects effects;
  Draws draws;
  DeviceWindow window;
  std::string last_error;

  // The handler that runs now.
  Handler handler = Handler::kNone;
  Message message;                      // kMessage: what message_read and reply refer to
  int32_t token_session = 0;            // kToken: the session whose token is in question
  std::optional<int32_t> forced_token;  // kToken

  int64_t tokens_appended = 0;
  int64_t tokens_generated = 0;

  // What the handler asked for and the loop does when it has returned.
  struct StateRequest {
    bool fork = false;  // else a checkpoint
    std::string name;
    uint64_t stream = 0;
    int64_t tag = 0;
  };
  std::vector<StateRequest> state_requests;
  std::deque<ForkNotice> forks;  // to be told to the guest

  // resource_exhausted if `count` more tokens would exceed the actor's limit.
  Status check_tokens(int64_t count) const;
};

}  // namespace driftwood::actor
