// chat: a conversation in event style. A message is a user turn; the answer is emitted token by token.
// See README.md for the configuration.
#include "driftwood.h"

typedef struct {
  const char* role;
  dw_buffer text;
} turn;

typedef struct {
  int64_t sender;
  dw_buffer text;
} question;

static turn* turns;  // turns[0] is the system's, if there is one
static uint32_t turn_count, turn_capacity;
static uint32_t system_turns;
static question* queue;  // questions that wait for the running answer
static uint32_t queue_count, queue_capacity;

static dw_buffer config, json, prompt;
static dw_tokens held;  // what the session holds
static dw_tokens wanted;
static int32_t session;
static int64_t context, max_answer;
static bool answering;
static int64_t asker;

static turn* add_turn(const char* role) {
  if (turn_count == turn_capacity) {
    turn_capacity = turn_capacity == 0 ? 16 : turn_capacity * 2;
    turns = realloc(turns, turn_capacity * sizeof *turns);
    if (turns == NULL) __builtin_trap();
  }
  turn* t = &turns[turn_count++];
  memset(t, 0, sizeof *t);
  t->role = role;
  return t;
}

// Forgets the oldest question and its answer.
static void drop_oldest(void) {
  uint32_t count = turn_count - system_turns < 2 ? 1 : 2;
  for (uint32_t i = 0; i < count; ++i) dw_buffer_free(&turns[system_turns + i].text);
  memmove(&turns[system_turns], &turns[system_turns + count], (turn_count - system_turns - count) * sizeof *turns);
  turn_count -= count;
}

// The whole conversation as the model's template has it, as tokens in `wanted`.
static int32_t render(void) {
  dw_buffer_clear(&json);
  dw_buffer_text(&json, "[");
  for (uint32_t i = 0; i < turn_count; ++i) {
    if (i != 0) dw_buffer_text(&json, ",");
    dw_buffer_text(&json, "{\"role\":\"");
    dw_buffer_text(&json, turns[i].role);
    dw_buffer_text(&json, "\",\"content\":");
    dw_buffer_json(&json, turns[i].text.data, turns[i].text.length);
    dw_buffer_text(&json, "}");
  }
  dw_buffer_text(&json, "]");
  const int32_t rendered = dw_render_chat(&json, DW_CHAT_GENERATION_PROMPT, &prompt);
  if (rendered >= 0) return dw_tokenize_text(prompt.data, prompt.length, DW_TOKENIZE_PARSE_SPECIAL, &wanted);
  if (rendered != DW_E_UNAVAILABLE) return rendered;
  // A base model without a template: the turns as plain text.
  dw_buffer_clear(&prompt);
  for (uint32_t i = 0; i < turn_count; ++i) {
    dw_buffer_append(&prompt, turns[i].text.data, turns[i].text.length);
    dw_buffer_text(&prompt, "\n");
  }
  return dw_tokenize_text(prompt.data, prompt.length, DW_TOKENIZE_ADD_SPECIAL, &wanted);
}

// Brings the session to exactly `wanted`, keeping what it has in common.
static int32_t sync_session(void) {
  uint32_t same = 0;
  while (same < held.count && same < wanted.count && held.ids[same] == wanted.ids[same]) ++same;
  if (same == wanted.count) --same;  // the last token is computed again: its logits are needed
  if (same < held.count) {
    const int32_t cut = dw_session_truncate(session, same);
    if (cut < 0) return cut;
    held.count = same;
  }
  const int32_t added = dw_session_append(session, wanted.ids + same, wanted.count - same);
  if (added < 0) return added;
  for (uint32_t i = same; i < wanted.count; ++i) dw_tokens_push(&held, wanted.ids[i]);
  return 0;
}

// Gives the question up. `what`: the call that failed; NULL: the log says it already.
static void fail(const char* what) {
  if (what != NULL) dw_log_failure(what);
  if (turn_count > system_turns) {  // the question had no answer: forget it
    dw_buffer_free(&turns[turn_count - 1].text);
    --turn_count;
  }
  answering = false;
}

static void ask(int64_t sender, const char* text, uint32_t length) {
  answering = true;
  asker = sender;
  dw_buffer_append(&add_turn("user")->text, text, length);
  int32_t count = render();
  // Room for the answer, at most a quarter of the context: the oldest turns go.
  const int64_t room = max_answer > 0 && max_answer < context / 4 ? max_answer : context / 4;
  while (count >= 0 && count + room > context && turn_count - system_turns > 1) {
    drop_oldest();
    count = render();
  }
  if (count < 0) return fail("prompt");
  if (count == 0 || count >= context) {
    dw_log_text(DW_LOG_ERROR, count == 0 ? "the message is empty" : "the message is longer than the model's context");
    return fail(NULL);
  }
  if (sync_session() < 0) {
    // Whatever the session holds now, the next turn starts from nothing.
    dw_session_truncate(session, 0);
    held.count = 0;
    return fail("session");
  }
  const dw_generate_params params = dw_generate_defaults(max_answer);
  if (dw_generate(session, &params, 1) < 0) return fail("generate");
  add_turn("assistant");
}

DW_ON_START() {
  dw_read_config(&config);
  dw_session_params params = dw_session_defaults();
  params.sampling = dw_config_sampling(&config);
  params.max_tokens = (int64_t)dw_config_u64(&config, "context", 0);
  max_answer = (int64_t)dw_config_u64(&config, "max_tokens", 0);
  session = dw_session_open(&params);
  if (session < 0) return dw_log_failure("session_open");
  context = params.max_tokens == 0 ? dw_max_context() : params.max_tokens;
  uint32_t length = 0;
  const char* system = dw_config_find(&config, "system", &length);
  if (system != NULL && length != 0) {
    dw_buffer_append(&add_turn("system")->text, system, length);
    system_turns = 1;
  }
}

DW_ON_MESSAGE(sender, length) {
  static dw_buffer message;
  if (dw_read_message(&message, length) < 0) return dw_log_failure("message_read");
  if (session <= 0) return dw_log_text(DW_LOG_ERROR, "no session: this actor needs a model");
  if (!answering) return ask(sender, message.data, message.length);
  if (queue_count == queue_capacity) {
    queue_capacity = queue_capacity == 0 ? 4 : queue_capacity * 2;
    queue = realloc(queue, queue_capacity * sizeof *queue);
    if (queue == NULL) __builtin_trap();
  }
  question* waiting = &queue[queue_count++];
  memset(waiting, 0, sizeof *waiting);
  waiting->sender = sender;
  dw_buffer_append(&waiting->text, message.data, message.length);
}

DW_ON_TOKEN(tag, of, token, position) {
  (void)tag, (void)of, (void)position;
  char text[256];
  int32_t length = dw_token_text(token, text, sizeof text);
  if (length < 0) length = 0;
  if (length > (int32_t)sizeof text) length = sizeof text;
  dw_tokens_push(&held, token);
  dw_buffer_append(&turns[turn_count - 1].text, text, (uint32_t)length);
  if (asker == DW_OUTSIDE && length != 0) dw_emit(text, (uint32_t)length);
  return DW_TOKEN_CONTINUE;
}

DW_ON_DONE(tag, of, reason, tokens) {
  (void)tag, (void)of, (void)tokens;
  answering = false;
  const dw_buffer* answer = &turns[turn_count - 1].text;
  if (reason == DW_DONE_ERROR || reason == DW_DONE_LIMIT) dw_log_failure("answer");
  if (asker != DW_OUTSIDE && dw_send_to(asker, answer->data, answer->length) < 0) dw_log_failure("send_to");
  while (!answering && queue_count != 0) {
    question next = queue[0];
    memmove(&queue[0], &queue[1], --queue_count * sizeof *queue);
    ask(next.sender, next.text.data, next.text.length);
    dw_buffer_free(&next.text);
  }
}
