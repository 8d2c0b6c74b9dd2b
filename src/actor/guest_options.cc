#include "actor/guest_options.h"

namespace driftwood::actor {
namespace {

constexpr int kErrorLevel = 3;

}  // namespace

wasm::InstanceOptions instance_options_of(ActorContext* context) {
  const ActorOptions& options = context->options;
  wasm::InstanceOptions made;
  made.actor_name = context->name;
  made.max_memory_bytes = options.limits.max_memory_bytes;
  made.call_deadline = options.limits.handler_deadline;
  made.user = context;
  made.wasi.args = options.wasi.args;
  made.wasi.env = options.wasi.env;
  made.wasi.folders = options.wasi.folders;
  made.wasi.stdout_sink = [context](std::string_view text) {
    const Status staged = context->effects.output(
        OutputKind::kStdout, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    if (!staged.is_ok()) context->last_error = "stdout: " + staged.message();
    return staged.is_ok();
  };
  made.wasi.stderr_sink = [context](std::string_view text) {
    if (!context->effects.charge(text.size()).is_ok()) return false;
    if (context->options.log) context->options.log(context->id, kErrorLevel, text);
    return true;
  };
  made.wasi.clock_ns = [context](uint32_t clock) { return context->draws.clock_ns(clock); };
  made.wasi.random_bytes = [context](std::span<uint8_t> out) { context->draws.random(out); };
  return made;
}

}  // namespace driftwood::actor
