// logits: blocking style. A message is a text (or token ids); the reply is its negative log-likelihood and the
// likeliest next tokens, computed in the guest from logits that land in its memory.
#include <math.h>

#include "driftwood.h"

enum { kBest = 5 };
static dw_buffer config, message, json;
static dw_tokens tokens;
static float* row;
static int32_t vocabulary;

// log(sum(exp(row))).
static double log_sum(void) {
  float max = row[0];
  for (int32_t i = 1; i < vocabulary; ++i) max = row[i] > max ? row[i] : max;
  double sum = 0;
  for (int32_t i = 0; i < vocabulary; ++i) sum += exp((double)(row[i] - max));
  return max + log(sum);
}

static void best_tokens(double total) {
  float below = INFINITY;
  int32_t last = -1;
  for (int n = 0; n < kBest && n < vocabulary; ++n) {
    int32_t best = -1;
    for (int32_t i = 0; i < vocabulary; ++i) {
      const bool after = row[i] < below || (row[i] == below && i > last);
      if (after && (best < 0 || row[i] > row[best])) best = i;
    }
    if (best < 0) return;
    below = row[best];
    last = best;
    char text[64];
    int32_t length = dw_token_text(best, text, sizeof text);
    if (length > (int32_t)sizeof text) length = sizeof text;
    dw_buffer_text(&json, n == 0 ? "{\"id\":" : ",{\"id\":");
    dw_buffer_integer(&json, best);
    if (length >= 0) {
      dw_buffer_text(&json, ",\"text\":");
      dw_buffer_json(&json, text, (uint32_t)length);
    }
    dw_buffer_text(&json, ",\"logprob\":");
    dw_buffer_number(&json, row[best] - total);
    dw_buffer_text(&json, "}");
  }
}

static int32_t read_tokens(void) {
  uint32_t length = 0;
  const char* input = dw_config_find(&config, "input", &length);
  if (input != NULL && length == 3 && memcmp(input, "ids", 3) == 0) {
    tokens.count = 0;
    dw_tokens_reserve(&tokens, message.length / 4);
    tokens.count = message.length / 4;
    memcpy(tokens.ids, message.data, tokens.count * 4);
    return (int32_t)tokens.count;
  }
  return dw_tokenize_text(message.data, message.length, DW_TOKENIZE_ADD_SPECIAL, &tokens);
}

// One token at a time, so that every row of logits passes by. Bits do not depend on how a prompt is cut.
static int32_t score(int32_t session) {
  double nll = 0, total = 0;
  for (uint32_t i = 0; i < tokens.count; ++i) {
    if (tokens.ids[i] < 0 || tokens.ids[i] >= vocabulary) return DW_E_INVALID_ARGUMENT;
    if (i != 0) nll += total - row[tokens.ids[i]];
    int32_t result = dw_session_append(session, &tokens.ids[i], 1);
    if (result == 0) result = dw_step(session);
    if (result == 0) result = dw_logits(session, row, (uint32_t)vocabulary);
    if (result < 0) return result;
    total = log_sum();
  }
  dw_buffer_clear(&json);
  dw_buffer_text(&json, "{\"tokens\":");
  dw_buffer_integer(&json, tokens.count);
  dw_buffer_text(&json, ",\"mean_nll\":");
  dw_buffer_number(&json, tokens.count > 1 ? nll / (tokens.count - 1) : 0);
  dw_buffer_text(&json, ",\"next\":[");
  best_tokens(total);
  dw_buffer_text(&json, "]}\n");
  return dw_reply(json.data, json.length);
}

DW_ON_MESSAGE(sender, length) {
  (void)sender;
  if (dw_read_config(&config) < 0 || dw_read_message(&message, length) < 0) return dw_log_failure("read");
  vocabulary = dw_vocab_size();
  if (vocabulary < 0) return dw_log_failure("vocab_size");
  if (row == NULL) row = malloc((uint32_t)vocabulary * sizeof(float));
  if (row == NULL) __builtin_trap();
  const int32_t count = read_tokens();
  if (count < 0) return dw_log_failure("tokenize");
  if (count == 0) return dw_log_text(DW_LOG_ERROR, "the message is empty");
  const dw_session_params params = dw_session_defaults();
  const int32_t session = dw_session_open(&params);
  if (session < 0) return dw_log_failure("session_open");
  if (score(session) < 0) dw_log_failure("score");
  dw_session_close(session);
}
