// Host calls on text: the model's tokenizer and chat template.
#include <algorithm>

#include "actor/guest_call.h"

namespace driftwood::actor {
namespace {

constexpr uint32_t kAddSpecial = 1;
constexpr uint32_t kParseSpecial = 2;
constexpr uint32_t kShowSpecial = 1;
constexpr uint32_t kGenerationPrompt = 1;

const text::Tokenizer* tokenizer(GuestCall& call, Status* error) {
  engine::Engine* engine = call.actor().engine;
  if (engine == nullptr) {
    *error = unavailable("this actor runs without a model");
    return nullptr;
  }
  const text::Tokenizer* found = engine->model().tokenizer.get();
  if (found == nullptr) *error = unavailable("the model has no tokenizer; use token ids");
  return found;
}

Status check_flags(uint32_t flags, uint32_t known) {
  if ((flags & ~known) == 0) return Status::ok();
  return invalid_argument("flags " + std::to_string(flags) + " has bits ABI 1 does not know");
}

Status check_length(GuestCall& call, uint64_t length) {
  const uint64_t limit = call.actor().options.limits.max_message_bytes;
  if (length <= limit) return Status::ok();
  return resource_exhausted(std::to_string(length) + " bytes of text; the limit is " + std::to_string(limit));
}

int64_t tokenize(GuestCall& call) {
  std::string_view text;
  std::span<int32_t> out;
  if (!call.text_at(0, &text)) return 0;
  const GuestCall::Array array = call.array(call.u32(3), call.u32(4), &out);
  if (array == GuestCall::Array::kTrapped) return 0;
  if (array == GuestCall::Array::kMisaligned) return call.fail(call.misaligned("out", call.u32(3), 4));
  const uint32_t flags = call.u32(2);
  Status error = check_flags(flags, kAddSpecial | kParseSpecial);
  if (error.is_ok()) error = check_length(call, text.size());
  if (!error.is_ok()) return call.fail(error);
  const text::Tokenizer* tok = tokenizer(call, &error);
  if (tok == nullptr) return call.fail(error);
  const Result<std::vector<int32_t>> ids =
      tok->encode(text, {(flags & kAddSpecial) != 0, (flags & kParseSpecial) != 0});
  if (!ids.is_ok()) return call.fail(ids.status());
  std::copy_n(ids->begin(), std::min(ids->size(), out.size()), out.begin());
  return static_cast<int64_t>(ids->size());
}

int64_t detokenize(GuestCall& call) {
  std::span<int32_t> ids;
  std::span<uint8_t> out;
  const GuestCall::Array array = call.array(call.u32(0), call.u32(1), &ids);
  if (array == GuestCall::Array::kTrapped || !call.memory_at(3, &out)) return 0;
  if (array == GuestCall::Array::kMisaligned) return call.fail(call.misaligned("ids", call.u32(0), 4));
  Status error = check_flags(call.u32(2), kShowSpecial);
  if (error.is_ok()) error = check_length(call, ids.size_bytes());
  if (!error.is_ok()) return call.fail(error);
  const text::Tokenizer* tok = tokenizer(call, &error);
  if (tok == nullptr) return call.fail(error);
  const Result<std::string> text = tok->decode(ids.data(), ids.size(), (call.u32(2) & kShowSpecial) != 0);
  if (!text.is_ok()) return call.fail(text.status());
  return call.fill(3, *text);
}

int64_t token_text(GuestCall& call) {
  std::span<uint8_t> out;
  if (!call.memory_at(1, &out)) return 0;
  Status error;
  const text::Tokenizer* tok = tokenizer(call, &error);
  if (tok == nullptr) return call.fail(error);
  const Result<std::string> bytes = tok->token_bytes(call.i32(0));
  if (!bytes.is_ok()) return call.fail(bytes.status());
  return call.fill(1, *bytes);
}

int64_t chat_template(GuestCall& call) {
  std::string_view json;
  std::span<uint8_t> out;
  if (!call.text_at(0, &json) || !call.memory_at(3, &out)) return 0;
  Status error = check_flags(call.u32(2), kGenerationPrompt);
  if (error.is_ok()) error = check_length(call, json.size());
  if (!error.is_ok()) return call.fail(error);
  engine::Engine* engine = call.actor().engine;
  if (engine == nullptr) return call.fail(unavailable("this actor runs without a model"));
  const text::ChatTemplate* chat = engine->model().chat_template.get();
  if (chat == nullptr) return call.fail(unavailable("the model has no chat template"));
  const Result<std::string> text = chat->render(json, (call.u32(2) & kGenerationPrompt) != 0, "");
  if (!text.is_ok()) return call.fail(text.status());
  return call.fill(3, *text);
}

int64_t end_token(GuestCall& call) {
  Status error;
  const text::Tokenizer* tok = tokenizer(call, &error);
  if (tok == nullptr) return call.fail(error);
  const std::vector<int32_t>& ends = tok->end_tokens();
  return std::find(ends.begin(), ends.end(), call.i32(0)) != ends.end() ? 1 : 0;
}

int64_t vocab_size(GuestCall& call) {
  engine::Engine* engine = call.actor().engine;
  if (engine == nullptr) return call.fail(unavailable("this actor runs without a model"));
  return engine->model().config.vocab_size;
}

constexpr HostCall kCalls[] = {
    {"text", "tokenize", "ptr text, len length, i32 flags, ptr out, len capacity", "i32",
     DW_HOST_CALL(tokenize)},
    {"text", "detokenize", "ptr ids, len count, i32 flags, ptr out, len capacity", "i32",
     DW_HOST_CALL(detokenize)},
    {"text", "token_text", "i32 id, ptr out, len capacity", "i32", DW_HOST_CALL(token_text)},
    {"text", "chat_template", "ptr json, len length, i32 flags, ptr out, len capacity", "i32",
     DW_HOST_CALL(chat_template)},
    {"text", "end_token", "i32 id", "i32", DW_HOST_CALL(end_token)},
    {"text", "vocab_size", "", "i32", DW_HOST_CALL(vocab_size)},
};

}  // namespace

std::span<const HostCall> text_calls() { return kCalls; }

}  // namespace driftwood::actor
