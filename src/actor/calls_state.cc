// Host calls on the actor's own state: fork it, keep it. Both happen when the handler has returned, so that
// there is no guest frame in what is copied.
#include "actor/guest_call.h"

namespace driftwood::actor {
namespace {

constexpr size_t kMaxRequests = 16;  // of one handler
constexpr size_t kMaxName = 256;

Status check_request(GuestCall& call, std::string_view name, bool may_be_empty) {
  if (name.size() > kMaxName || (name.empty() && !may_be_empty)) {
    return invalid_argument("a name has 1 to 256 bytes");
  }
  if (call.actor().state_requests.size() >= kMaxRequests) {
    return resource_exhausted("a handler may ask for " + std::to_string(kMaxRequests) +
                              " forks and checkpoints");
  }
  return Status::ok();
}

int64_t actor_fork(GuestCall& call) {
  std::string_view name;
  if (!call.text_at(0, &name)) return 0;
  if (const Status can = check_request(call, name, false); !can.is_ok()) return call.fail(can);
  call.actor().state_requests.push_back(
      {true, std::string(name), static_cast<uint64_t>(call.i64(2)), call.i64(3)});
  return 0;
}

int64_t checkpoint(GuestCall& call) {
  std::string_view name;
  if (!call.text_at(0, &name)) return 0;
  if (!call.actor().options.checkpoint) {
    return call.fail(unavailable("nobody keeps snapshots of this actor"));
  }
  if (const Status can = check_request(call, name, true); !can.is_ok()) return call.fail(can);
  call.actor().state_requests.push_back({false, std::string(name), 0, 0});
  return 0;
}

constexpr HostCall kCalls[] = {
    {"state", "actor_fork", "ptr name, len name_length, i64 stream, i64 tag", "i32",
     DW_HOST_CALL(actor_fork)},
    {"state", "checkpoint", "ptr name, len name_length", "i32", DW_HOST_CALL(checkpoint)},
};

}  // namespace

std::span<const HostCall> state_calls() { return kCalls; }

}  // namespace driftwood::actor
