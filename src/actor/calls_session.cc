// Host calls on sessions: open, fork, append, truncate, length, close, sampling parameters.
#include <algorithm>

#include "actor/abi_structs.h"
#include "actor/guest_call.h"

namespace driftwood::actor {

Session* session_argument(GuestCall& call, bool change, Status* error) {
  Session* session = call.actor().sessions.find(call.i32(0));
  if (session == nullptr) {
    *error = not_found("session " + std::to_string(call.i32(0)) + " is not open");
    return nullptr;
  }
  if (change && session->generating) {
    *error = failed_precondition("session " + std::to_string(call.i32(0)) +
                                 " is generating; cancel that or wait for dw_on_done");
    return nullptr;
  }
  return session;
}

bool read_sampling(GuestCall& call, const AbiSampling& abi, sampler::SamplerParams* params, Status* error) {
  if (abi.bias_count > kMaxBias) {
    *error = invalid_argument("bias_count is " + std::to_string(abi.bias_count) + ", at most " +
                              std::to_string(kMaxBias));
    return false;
  }
  std::span<int32_t> ids;
  std::span<float> values;
  if (abi.bias_count != 0) {
    const GuestCall::Array a = call.array(abi.bias_ids, abi.bias_count, &ids);
    if (a == GuestCall::Array::kTrapped) return false;
    const GuestCall::Array b = call.array(abi.bias_values, abi.bias_count, &values);
    if (b == GuestCall::Array::kTrapped) return false;
    if (a == GuestCall::Array::kMisaligned) *error = call.misaligned("bias_ids", abi.bias_ids, 4);
    if (b == GuestCall::Array::kMisaligned) *error = call.misaligned("bias_values", abi.bias_values, 4);
    if (!error->is_ok()) return false;
  }
  params->temperature = abi.temperature;
  params->top_k = abi.top_k;
  params->top_p = abi.top_p;
  params->min_p = abi.min_p;
  params->repetition_penalty = abi.repetition_penalty;
  params->presence_penalty = abi.presence_penalty;
  params->frequency_penalty = abi.frequency_penalty;
  params->penalty_last_n = abi.penalty_last_n;
  params->seed = abi.seed;
  params->stream = abi.stream;
  params->logit_bias.clear();
  for (size_t i = 0; i < ids.size(); ++i) params->logit_bias.emplace_back(ids[i], values[i]);
  *error = sampler::validate(*params, call.actor().engine->model().config.vocab_size);
  return error->is_ok();
}

namespace {

Status no_model() { return unavailable("this actor runs without a model"); }

int64_t max_context(GuestCall& call) {
  if (call.actor().engine == nullptr) return call.fail(no_model());
  return call.actor().engine->max_context();
}

int64_t session_open(GuestCall& call) {
  ActorContext& actor = call.actor();
  AbiSessionParams abi{};
  engine::SessionOptions options;
  Status error;
  const bool given = call.u32(0) != 0;
  if (given && !call.structure(call.u32(0), &abi, &error)) return error.is_ok() ? 0 : call.fail(error);
  if (actor.engine == nullptr) return call.fail(no_model());
  if (given) {
    if (abi.reserved != 0) return call.fail(invalid_argument("dw_session_params.reserved must be 0"));
    if (abi.max_tokens < 0) return call.fail(invalid_argument("dw_session_params.max_tokens is negative"));
    if (abi.sampling.size != sizeof(AbiSampling)) {
      return call.fail(invalid_argument("dw_session_params.sampling.size is " +
                                        std::to_string(abi.sampling.size) + ", ABI 1 has 64"));
    }
    options.max_tokens = abi.max_tokens;
    if (!read_sampling(call, abi.sampling, &options.sampling, &error))
      return error.is_ok() ? 0 : call.fail(error);
  }
  if (error = actor.sessions.check_room(); !error.is_ok()) return call.fail(error);
  const int64_t most = actor.engine->max_context();
  if (options.max_tokens > most) {
    return call.fail(out_of_range("max_tokens " + std::to_string(options.max_tokens) +
                                  " exceeds the engine's context of " + std::to_string(most)));
  }
  const Result<engine::SessionId> id = actor.engine->open(options);
  if (!id.is_ok()) return call.fail(id.status());
  return actor.sessions.add(*id, options.max_tokens == 0 ? most : options.max_tokens)->handle;
}

int64_t session_fork(GuestCall& call) {
  ActorContext& actor = call.actor();
  Status error;
  const Session* parent = session_argument(call, false, &error);
  if (parent == nullptr) return call.fail(error);
  if (error = actor.sessions.check_room(); !error.is_ok()) return call.fail(error);
  const Result<engine::SessionId> id = actor.engine->fork(parent->id, static_cast<uint64_t>(call.i64(1)));
  if (!id.is_ok()) return call.fail(id.status());
  return actor.sessions.add(*id, parent->capacity)->handle;
}

int64_t session_append(GuestCall& call) {
  ActorContext& actor = call.actor();
  std::span<int32_t> ids;
  const GuestCall::Array array = call.array(call.u32(1), call.u32(2), &ids);
  if (array == GuestCall::Array::kTrapped) return 0;
  if (array == GuestCall::Array::kMisaligned) return call.fail(call.misaligned("ids", call.u32(1), 4));
  Status error;
  const Session* session = session_argument(call, true, &error);
  if (session == nullptr) return call.fail(error);
  const auto count = static_cast<int64_t>(ids.size());
  if (error = actor.check_tokens(count); !error.is_ok()) return call.fail(error);
  if (error = actor.engine->append(session->id, ids); !error.is_ok()) return call.fail(error);
  actor.tokens_appended += count;
  return 0;
}

int64_t session_truncate(GuestCall& call) {
  Status error;
  const Session* session = session_argument(call, true, &error);
  if (session == nullptr) return call.fail(error);
  return call.result(call.actor().engine->truncate(session->id, call.i64(1)));
}

int64_t session_length(GuestCall& call) {
  Status error;
  const Session* session = session_argument(call, false, &error);
  if (session == nullptr) return call.fail(error);
  const Result<int64_t> length = call.actor().engine->length(session->id);
  return length.is_ok() ? *length : call.fail(length.status());
}

int64_t session_close(GuestCall& call) {
  Status error;
  Session* session = session_argument(call, true, &error);
  if (session == nullptr) return call.fail(error);
  error = call.actor().engine->close(session->id);
  call.actor().sessions.remove(session);
  return call.result(error);
}

int64_t session_set_sampling(GuestCall& call) {
  AbiSampling abi{};
  Status error;
  if (!call.structure(call.u32(1), &abi, &error)) return error.is_ok() ? 0 : call.fail(error);
  const Session* session = session_argument(call, false, &error);
  if (session == nullptr) return call.fail(error);
  sampler::SamplerParams params;
  if (!read_sampling(call, abi, &params, &error)) return error.is_ok() ? 0 : call.fail(error);
  return call.result(call.actor().engine->set_sampling(session->id, params));
}

constexpr HostCall kCalls[] = {
    {"session", "max_context", "", "i64", DW_HOST_CALL(max_context)},
    {"session", "session_open", "ptr params", "i32", DW_HOST_CALL(session_open)},
    {"session", "session_fork", "i32 session, i64 stream", "i32", DW_HOST_CALL(session_fork)},
    {"session", "session_append", "i32 session, ptr ids, len count", "i32", DW_HOST_CALL(session_append)},
    {"session", "session_truncate", "i32 session, i64 length", "i32", DW_HOST_CALL(session_truncate)},
    {"session", "session_length", "i32 session", "i64", DW_HOST_CALL(session_length)},
    {"session", "session_close", "i32 session", "i32", DW_HOST_CALL(session_close)},
    {"session", "session_set_sampling", "i32 session, ptr sampling", "i32",
     DW_HOST_CALL(session_set_sampling)},
};

}  // namespace

std::span<const HostCall> session_calls() { return kCalls; }

}  // namespace driftwood::actor
