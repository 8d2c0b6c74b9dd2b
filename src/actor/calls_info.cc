// Host calls about the actor itself: version, log, clock, random, last error, name, configuration.
#include "actor/guest_call.h"

namespace driftwood::actor {
namespace {

constexpr int64_t kAbiVersion = 1;
static_assert(std::string_view(kAbiText) == "1", "snapshots name this version");
constexpr int32_t kMaxLogLevel = 3;

int64_t abi_version(GuestCall&) { return kAbiVersion; }

int64_t log(GuestCall& call) {
  const int32_t level = call.i32(0);
  std::string_view text;
  if (!call.text_at(1, &text)) return 0;
  if (level < 0 || level > kMaxLogLevel) {
    return call.fail(invalid_argument("level " + std::to_string(level) + " is not 0 to 3"));
  }
  ActorContext& actor = call.actor();
  if (const Status room = actor.effects.charge(text.size()); !room.is_ok()) return call.fail(room);
  if (actor.options.log) actor.options.log(actor.id, level, text);
  return 0;
}

int64_t clock_ns(GuestCall& call) {
  const int32_t clock = call.i32(0);
  if (clock != 0 && clock != 1) {
    return call.fail(
        invalid_argument("clock " + std::to_string(clock) + " is not 0 (real) or 1 (monotonic)"));
  }
  return static_cast<int64_t>(call.actor().draws.clock_ns(static_cast<uint32_t>(clock)));
}

int64_t random(GuestCall& call) {
  std::span<uint8_t> out;
  if (!call.memory_at(0, &out)) return 0;
  call.actor().draws.random(out);
  return 0;
}

int64_t last_error(GuestCall& call) { return call.fill(0, call.actor().last_error); }

int64_t self_name(GuestCall& call) { return call.fill(0, call.actor().name); }

int64_t config_read(GuestCall& call) {
  return call.fill(0, std::span<const uint8_t>(call.actor().options.config));
}

constexpr HostCall kCalls[] = {
    {"info", "abi_version", "", "i32", DW_HOST_CALL(abi_version)},
    {"info", "log", "i32 level, ptr text, len length", "i32", DW_HOST_CALL(log)},
    {"info", "clock_ns", "i32 clock", "i64", DW_HOST_CALL(clock_ns)},
    {"info", "random", "ptr out, len length", "i32", DW_HOST_CALL(random)},
    {"info", "last_error", "ptr out, len capacity", "i32", DW_HOST_CALL(last_error)},
    {"info", "self_name", "ptr out, len capacity", "i32", DW_HOST_CALL(self_name)},
    {"info", "config_read", "ptr out, len capacity", "i32", DW_HOST_CALL(config_read)},
};

}  // namespace

std::span<const HostCall> info_calls() { return kCalls; }

}  // namespace driftwood::actor
