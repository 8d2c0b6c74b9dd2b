// SoloGuest: a guest whose exports the caller calls by hand, on the caller's thread: no events, no mailbox,
// no other actors. For measurements and proofs, and for tests of single host calls; everything else is an
// actor.
//
// All host calls work but those that need a handler (message_read, reply, force_token); nothing runs a
// generate. Effects gather until flush(). One thread at a time.
#pragma once

#include <memory>

#include "actor/actor.h"

namespace driftwood::actor {

class SoloGuest {
 public:
  // engine and device may be null and outlive the guest.
  static Result<std::unique_ptr<SoloGuest>> create(wasm::Runtime& runtime,
                                                   std::shared_ptr<wasm::Module> module,
                                                   const std::string& name, ActorOptions options,
                                                   engine::Engine* engine, device::Device* device);
  virtual ~SoloGuest() = default;
  virtual wasm::Instance& instance() = 0;
  // Gives what was emitted since to the output sink.
  virtual void flush() = 0;
  // Text of the last error code a call returned.
  virtual const std::string& last_error() const = 0;
};

}  // namespace driftwood::actor
