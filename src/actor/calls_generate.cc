// Host calls that compute: step, sample and logits inside a handler; generate, cancel and force_token around
// dw_on_token; masks for both.
#include <algorithm>

#include "actor/abi_structs.h"
#include "actor/guest_call.h"

namespace driftwood::actor {
namespace {

constexpr uint32_t kStopAtEnd = 1;

int64_t step(GuestCall& call) {
  Status error;
  const Session* session = session_argument(call, true, &error);
  if (session == nullptr) return call.fail(error);
  // Only a step that computed something was a wait for the model; any other would be a way around the deadline.
  engine::Engine& engine = *call.actor().engine;
  const Result<int64_t> before = engine.computed(session->id);
  error = engine.step(session->id);
  const Result<int64_t> after = engine.computed(session->id);
  if (error.is_ok() && before.is_ok() && after.is_ok() && *after > *before) call.waited();
  return call.result(error);
}

int64_t sample(GuestCall& call) {
  ActorContext& actor = call.actor();
  Status error;
  Session* session = session_argument(call, true, &error);
  if (session == nullptr) return call.fail(error);
  const Result<int32_t> token = actor.engine->sample(session->id, session->next_mask());
  session->masked = false;
  return token.is_ok() ? *token : call.fail(token.status());
}

int64_t logits(GuestCall& call) {
  std::span<float> out;
  const GuestCall::Array array = call.array(call.u32(1), call.u32(2), &out);
  if (array == GuestCall::Array::kTrapped) return 0;
  if (array == GuestCall::Array::kMisaligned) return call.fail(call.misaligned("out", call.u32(1), 4));
  Status error;
  const Session* session = session_argument(call, false, &error);
  if (session == nullptr) return call.fail(error);
  const Result<std::span<const float>> row = call.actor().engine->logits(session->id);
  if (!row.is_ok()) return call.fail(row.status());
  std::copy_n(row->begin(), std::min(row->size(), out.size()), out.begin());
  return static_cast<int64_t>(row->size());
}

int64_t set_mask(GuestCall& call) {
  std::span<uint64_t> words;
  const GuestCall::Array array = call.array(call.u32(1), call.u32(2), &words);
  if (array == GuestCall::Array::kTrapped) return 0;
  if (array == GuestCall::Array::kMisaligned) return call.fail(call.misaligned("words", call.u32(1), 8));
  Status error;
  Session* session = session_argument(call, false, &error);
  if (session == nullptr) return call.fail(error);
  const auto vocabulary = static_cast<uint64_t>(call.actor().engine->model().config.vocab_size);
  const uint64_t needed = (vocabulary + 63) / 64;
  if (!words.empty() && words.size() != needed) {
    return call.fail(invalid_argument("a mask of " + std::to_string(words.size()) +
                                      " words; this model's has " + std::to_string(needed) +
                                      ", 0 takes a mask back"));
  }
  session->mask.assign(words.begin(), words.end());
  session->masked = !words.empty();
  return 0;
}

int64_t generate(GuestCall& call) {
  ActorContext& actor = call.actor();
  AbiGenerateParams abi{};
  Status error;
  if (!call.structure(call.u32(1), &abi, &error)) return error.is_ok() ? 0 : call.fail(error);
  if ((abi.flags & ~kStopAtEnd) != 0) {
    return call.fail(
        invalid_argument("flags " + std::to_string(abi.flags) + " has bits ABI 1 does not know"));
  }
  if (abi.max_tokens < 0) return call.fail(invalid_argument("dw_generate_params.max_tokens is negative"));
  if (abi.run_ahead != 0) return call.fail(unimplemented("run_ahead is not 0; ABI 1 is lock-step"));
  if (abi.reserved != 0) return call.fail(invalid_argument("dw_generate_params.reserved must be 0"));
  Session* session = session_argument(call, true, &error);
  if (session == nullptr) return call.fail(error);
  const Result<int64_t> length = actor.engine->length(session->id);
  if (!length.is_ok()) return call.fail(length.status());
  if (*length == 0) {
    return call.fail(failed_precondition("session " + std::to_string(session->handle) +
                                         " is empty; append a prompt first"));
  }
  Generate generate;
  generate.tag = call.i64(2);
  generate.session = session->handle;
  generate.stop_at_end = (abi.flags & kStopAtEnd) != 0;
  generate.max_tokens = abi.max_tokens;
  if (error = actor.generates.add(generate); !error.is_ok()) return call.fail(error);
  session->generating = true;
  return 0;
}

int64_t cancel(GuestCall& call) {
  ActorContext& actor = call.actor();
  const int64_t tag = call.i64(0);
  const Generate* found = actor.generates.find(tag);
  if (found == nullptr) {
    return call.fail(not_found("no generate with tag " + std::to_string(tag) + " is outstanding"));
  }
  if (Session* session = actor.sessions.find(found->session)) session->generating = false;
  actor.generates.end(tag, DoneReason::kCancelled, "");
  return 0;
}

int64_t force_token(GuestCall& call) {
  ActorContext& actor = call.actor();
  Status error;
  if (session_argument(call, false, &error) == nullptr) return call.fail(error);
  if (actor.handler != Handler::kToken || actor.token_session != call.i32(0)) {
    return call.fail(failed_precondition("force_token is for the session whose dw_on_token runs"));
  }
  const int32_t id = call.i32(1);
  const int64_t vocabulary = actor.engine->model().config.vocab_size;
  if (id < 0 || id >= vocabulary) {
    return call.fail(invalid_argument("token " + std::to_string(id) + " is not in the vocabulary of " +
                                      std::to_string(vocabulary)));
  }
  actor.forced_token = id;
  return 0;
}

constexpr HostCall kCalls[] = {
    {"generate", "step", "i32 session", "i32", DW_HOST_CALL(step)},
    {"generate", "sample", "i32 session", "i32", DW_HOST_CALL(sample)},
    {"generate", "logits", "i32 session, ptr out, len capacity", "i32", DW_HOST_CALL(logits)},
    {"generate", "set_mask", "i32 session, ptr words, len count", "i32", DW_HOST_CALL(set_mask)},
    {"generate", "generate", "i32 session, ptr params, i64 tag", "i32", DW_HOST_CALL(generate)},
    {"generate", "cancel", "i64 tag", "i32", DW_HOST_CALL(cancel)},
    {"generate", "force_token", "i32 session, i32 id", "i32", DW_HOST_CALL(force_token)},
};

}  // namespace

std::span<const HostCall> generate_calls() { return kCalls; }

}  // namespace driftwood::actor
