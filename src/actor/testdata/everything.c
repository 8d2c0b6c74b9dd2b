// Test guest: uses every kind of state an actor has, and emits a line for every event that depends on all of it. Whoever
// loses a part of the state in a snapshot changes some later line.
#include "driftwood.h"

static uint32_t events;            // memory
static int32_t greedy, sampled, masked;
static dw_buffer diary;            // heap
static dw_buffer config;

// The stack pointer is a mutable global: what it is worth shows in the address of a local.
__attribute__((noinline)) static uint32_t stack_depth(uint32_t n) {
  volatile uint32_t local = n;
  char text[24];
  if (n > 0) return stack_depth(n - 1) + local;
  snprintf(text, sizeof text, "%p", (void*)&local);
  return (uint32_t)strtoul(text, NULL, 16);
}

static void line(const char* what, int64_t a, int64_t b) {
  char text[400];
  uint64_t random = 0;
  char error[160] = "";
  ++events;
  dw_random(&random, 5);
  const int32_t error_length = dw_last_error(error, sizeof error - 1);
  error[error_length < 0 ? 0 : error_length < (int32_t)sizeof error - 1 ? error_length : (int32_t)sizeof error - 1] = 0;
  const int n = snprintf(text, sizeof text, "%u %s %lld %lld random %llx stack %u diary %u config %u error '%s'\n", events,
                         what, (long long)a, (long long)b, (unsigned long long)random, stack_depth(3), diary.length,
                         config.length, error);
  dw_buffer_append(&diary, text, (uint32_t)n);
  dw_emit(text, (uint32_t)n);
}

static int32_t open_session(float temperature, int64_t most) {
  dw_session_params params = {sizeof params, 0, most, {0}};
  params.sampling = dw_sampling_defaults();
  params.sampling.temperature = temperature;
  params.sampling.seed = 77;
  params.sampling.repetition_penalty = 1.1f;
  return dw_session_open(&params);
}

DW_ON_START() {
  dw_read_config(&config);
  const int32_t prompt[5] = {1, 2, 3, 4, 5};
  const int32_t gone = open_session(0, 0);
  dw_session_close(gone);  // its handle must stay dead
  greedy = open_session(0, 40);
  sampled = open_session(0.9f, 0);
  masked = open_session(1.5f, 0);
  dw_session_append(greedy, prompt, 5);
  dw_session_append(sampled, prompt, 3);
  dw_session_append(masked, prompt, 1);
  dw_generate_params until_full = dw_generate_defaults(0);
  dw_generate_params twelve = dw_generate_defaults(12);
  dw_generate(greedy, &until_full, 100);
  dw_generate(sampled, &twelve, 200);
  line("start", dw_session_append(gone, prompt, 1), 0);
  dw_timer_set(0, 7);
  dw_timer_set(0, 8);
  dw_timer_set(3600000000000, 9);
  dw_send("self", 4, "to myself", 9);
}

DW_ON_MESSAGE(sender, length) {
  char text[32] = "";
  dw_message_read(text, sizeof text - 1);
  line(text, sender == 0 ? 0 : 1, length);
  if (strcmp(text, "cancel") == 0) line("cancelled", dw_cancel(100), 0);
  if (strcmp(text, "fail") == 0) dw_session_close(12345);
  if (strcmp(text, "open") == 0) line("opened", open_session(0, 0), 0);
  if (strcmp(text, "time") == 0) line("time", dw_clock_ns(DW_CLOCK_MONOTONIC) >= 3600000000000, 0);
}

DW_ON_TOKEN(tag, session, token, position) {
  line("token", tag * 1000000 + token, position * 1000 + (session != 0));
  if (tag == 200 && position == 6) {
    uint64_t mask[8] = {0};
    mask[0] = 0xff00;
    const int32_t words = (dw_vocab_size() + 63) / 64;
    if (words <= 8 && dw_set_mask(masked, mask, (uint32_t)words) == 0) {  // pending until the next draw
      dw_generate_params one = dw_generate_defaults(3);
      dw_generate(masked, &one, 300);
    }
  }
  if (tag == 200 && position == 9) {
    const int32_t copy = dw_session_fork(sampled, 5);
    dw_step(copy);
    line("fork", dw_sample(copy), dw_session_length(copy));
    dw_session_close(copy);
  }
  return DW_TOKEN_CONTINUE;
}

DW_ON_DONE(tag, session, reason, tokens) { line("done", tag * 10 + reason, tokens * 1000 + dw_session_length(session)); }

DW_ON_TIMER(tag) {
  line("timer", tag, 0);
  if (tag == 8) dw_timer_set(0, 10);
}

DW_ON_FORK(tag, child) { line("forked", tag, child == 0); }
