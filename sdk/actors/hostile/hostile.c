// hostile: does what an actor must not do, one thing per run, named by the configuration line mode=...
// The tests see to it that it ends with a message or gets an error code, and that nobody else notices.
#include "driftwood.h"

static dw_buffer config;
static const char* mode = "";
static volatile uint32_t sink;

static bool is(const char* name) { return strcmp(mode, name) == 0; }
static void spin(void) {
  dw_log_text(DW_LOG_INFO, "spinning");
  for (;;) ++sink;
}

// No tail call: every level keeps a frame.
__attribute__((noinline)) static uint32_t dive(uint32_t depth) {
  volatile uint32_t frame[64];
  frame[depth % 64] = depth;
  if (depth == UINT32_MAX) return 0;
  return dive(depth + 1) + frame[depth % 64];
}

// Levels without a frame in memory: the host's own stack is what runs out.
__attribute__((noinline)) static uint32_t dive_lean(uint32_t depth) {
  if (depth == UINT32_MAX) return 0;
  return dive_lean(depth + 1) ^ sink;
}

static void grow(void) {
  while (__builtin_wasm_memory_grow(0, 16) != (size_t)-1) ++sink;
  dw_emit("full", 4);
}

// The result of a call as text in the output.
static void say(const char* what, int64_t result) {
  dw_buffer line = {NULL, 0, 0};
  dw_buffer_text(&line, what);
  dw_buffer_text(&line, "=");
  dw_buffer_integer(&line, result);
  dw_buffer_text(&line, ";");
  dw_emit(line.data, line.length);
  dw_buffer_free(&line);
}

static void wrong_order(void) {
  const dw_generate_params params = dw_generate_defaults(4);
  say("generate_without_session", dw_generate(1, &params, 1));
  say("step_without_session", dw_step(77));
  say("fork_without_session", dw_session_fork(-5, 1));
  say("close_without_session", dw_session_close(0));
  char byte;
  say("message_outside", dw_message_read(&byte, 1));
  say("reply_outside", dw_reply("x", 1));
  say("cancel_nothing", dw_cancel(3));
  say("send_nobody", dw_send("nobody", 6, "x", 1));
  say("send_to_nobody", dw_send_to(99999, "x", 1));
  say("timer_cancel_nothing", dw_timer_cancel(3));
  say("timer_negative", dw_timer_set(-1, 3));
  say("clock_unknown", dw_clock_ns(9));
  say("log_level", dw_log(7, "x", 1));
}

static void wrong_session_calls(int32_t session) {
  dw_generate_params params = dw_generate_defaults(4);
  int32_t id = 1;
  say("generate_empty", dw_generate(session, &params, 1));
  say("step_empty", dw_step(session));
  say("sample_before_step", dw_sample(session));
  say("logits_before_step", dw_logits(session, NULL, 0));
  say("truncate_beyond", dw_session_truncate(session, 1000));
  id = -7;
  say("append_unknown_id", dw_session_append(session, &id, 1));
  id = 1;
  say("append", dw_session_append(session, &id, 1));
  say("force_outside", dw_force_token(session, 1));
  params.run_ahead = 1;
  say("run_ahead", dw_generate(session, &params, 1));
  params.run_ahead = 0;
  params.size = 5;
  say("struct_size", dw_generate(session, &params, 1));
  params.size = sizeof params;
  say("generate", dw_generate(session, &params, 1));
  say("generate_twice", dw_generate(session, &params, 2));
  say("append_generating", dw_session_append(session, &id, 1));
  say("close_generating", dw_session_close(session));
  say("cancel", dw_cancel(1));
  say("close", dw_session_close(session));
  say("close_twice", dw_session_close(session));
}

static void start_generating(void) {
  dw_session_params params = dw_session_defaults();
  const int32_t session = dw_session_open(&params);
  const int32_t ids[3] = {1, 2, 3};
  dw_generate_params generate = dw_generate_defaults(4);
  generate.flags = 0;
  if (dw_session_append(session, ids, 3) < 0 || dw_generate(session, &generate, 1) < 0) dw_log_failure("hostile");
}

static void flood(void) {
  static char block[4096];
  int64_t result = 0;
  while (result == 0) result = dw_emit(block, sizeof block);
  say("flood", result);
}

static void many_sessions(void) {
  int32_t count = 0, result;
  while ((result = dw_session_open(NULL)) > 0) ++count;
  dw_log_text(DW_LOG_INFO, "sessions used up");
  say("sessions", count);
  say("last", result);
}

DW_ON_START() {
  dw_read_config(&config);
  uint32_t length = 0;
  const char* value = dw_config_find(&config, "mode", &length);
  if (value == NULL) return;
  char* name = malloc(length + 1);
  if (name == NULL) return;
  memcpy(name, value, length);
  name[length] = 0;
  mode = name;
  if (is("loop_start")) spin();
  if (is("grow")) grow();
  if (is("recurse")) sink = dive(0);
  if (is("recurse_lean")) sink = dive_lean(0);
  if (is("trap_start")) __builtin_trap();
  if (is("divide")) {
    volatile uint32_t zero = 0;
    sink = 10 / zero;
  }
  if (is("wild_store")) *(volatile uint32_t*)0xfffffff0u = 1;
  if (is("wrong_order")) wrong_order();
  if (is("wrong_session_calls")) wrong_session_calls(dw_session_open(NULL));
  if (is("flood")) flood();
  if (is("many_sessions")) many_sessions();
  if (is("exit")) {
    dw_emit("bye", 3);
    exit(3);
  }
  if (is("emit_then_trap")) {
    dw_emit("never seen", 10);
    dw_send("witness", 7, "never seen", 10);
    printf("never seen\n");
    fflush(stdout);
    __builtin_trap();
  }
  if (is("loop_timer")) dw_timer_set(0, 5);
  if (is("loop_token") || is("trap_token") || is("loop_done") || is("bad_verdict") || is("replace_nothing")) {
    start_generating();
  }
}

DW_ON_MESSAGE(sender, length) {
  (void)sender, (void)length;
  if (is("loop_message")) spin();
  if (is("trap_message")) __builtin_trap();
}

DW_ON_TOKEN(tag, session, token, position) {
  (void)tag, (void)session, (void)position;
  if (is("loop_token")) spin();
  if (is("trap_token")) {
    dw_emit(&token, 4);
    __builtin_trap();
  }
  if (is("bad_verdict")) return 42;
  if (is("replace_nothing")) return DW_TOKEN_REPLACE;
  return DW_TOKEN_CONTINUE;
}

DW_ON_DONE(tag, session, reason, tokens) {
  (void)tag, (void)session, (void)tokens;
  if (is("loop_done")) spin();
  say("done", reason);
}

DW_ON_TIMER(tag) {
  (void)tag;
  spin();
}
