// Host calls for messages: read the one at hand, send, reply, emit. Nothing leaves before the handler
// returns.
#include "actor/guest_call.h"

namespace driftwood::actor {
namespace {

Status check_length(GuestCall& call, uint64_t length) {
  const uint64_t limit = call.actor().options.limits.max_message_bytes;
  if (length <= limit) return Status::ok();
  return resource_exhausted("a message of " + std::to_string(length) + " bytes; the limit is " +
                            std::to_string(limit));
}

int64_t post_to(GuestCall& call, ActorId target, std::span<const uint8_t> bytes) {
  ActorContext& actor = call.actor();
  if (target == kOutside) return call.result(actor.effects.output(OutputKind::kReply, bytes));
  if (const Status can = actor.post->check_receiver(target, bytes.size(), actor.effects.staged_for(target)); !can.is_ok())
    return call.fail(can);
  return call.result(actor.effects.message(target, bytes));
}

int64_t message_read(GuestCall& call) {
  std::span<uint8_t> out;
  if (!call.memory_at(0, &out)) return 0;
  if (call.actor().handler != Handler::kMessage) {
    return call.fail(failed_precondition("there is a message only inside dw_on_message"));
  }
  return call.fill(0, std::span<const uint8_t>(call.actor().message.bytes));
}

int64_t send(GuestCall& call) {
  std::string_view name;
  std::span<uint8_t> bytes;
  if (!call.text_at(0, &name) || !call.memory_at(2, &bytes)) return 0;
  constexpr size_t kMaxName = 256;
  if (name.size() > kMaxName) return call.fail(invalid_argument("an actor's name has at most 256 bytes"));
  if (const Status length = check_length(call, bytes.size()); !length.is_ok()) return call.fail(length);
  const Result<ActorId> target = call.actor().post->find_receiver(name);
  if (!target.is_ok()) return call.fail(target.status());
  return post_to(call, *target, bytes);
}

int64_t send_to(GuestCall& call) {
  std::span<uint8_t> bytes;
  if (!call.memory_at(1, &bytes)) return 0;
  if (const Status length = check_length(call, bytes.size()); !length.is_ok()) return call.fail(length);
  return post_to(call, static_cast<ActorId>(call.i64(0)), bytes);
}

int64_t reply(GuestCall& call) {
  std::span<uint8_t> bytes;
  if (!call.memory_at(0, &bytes)) return 0;
  if (call.actor().handler != Handler::kMessage) {
    return call.fail(failed_precondition("reply is for dw_on_message; later use send_to with its sender"));
  }
  if (const Status length = check_length(call, bytes.size()); !length.is_ok()) return call.fail(length);
  return post_to(call, call.actor().message.sender, bytes);
}

int64_t emit(GuestCall& call) {
  std::span<uint8_t> bytes;
  if (!call.memory_at(0, &bytes)) return 0;
  return call.result(call.actor().effects.output(OutputKind::kEmit, bytes));
}

constexpr HostCall kCalls[] = {
    {"message", "message_read", "ptr out, len capacity", "i32", DW_HOST_CALL(message_read)},
    {"message", "send", "ptr name, len name_length, ptr data, len length", "i32", DW_HOST_CALL(send)},
    {"message", "send_to", "i64 actor, ptr data, len length", "i32", DW_HOST_CALL(send_to)},
    {"message", "reply", "ptr data, len length", "i32", DW_HOST_CALL(reply)},
    {"message", "emit", "ptr data, len length", "i32", DW_HOST_CALL(emit)},
};

}  // namespace

std::span<const HostCall> message_calls() { return kCalls; }

}  // namespace driftwood::actor
