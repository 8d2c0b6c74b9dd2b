// Test guest: steers a generate from dw_on_token in every way there is, named by the configuration line mode=...
#include "driftwood.h"

static dw_buffer config;
static char mode[32];
static int32_t session, seen;

static bool is(const char* name) { return strcmp(mode, name) == 0; }

static void begin(int64_t tag) {
  dw_generate_params params = dw_generate_defaults(is("full") ? 0 : 8);
  const int32_t prompt[3] = {1, 2, 3};
  session = dw_session_open(NULL);
  dw_session_append(session, prompt, 3);
  if (is("mask_first")) {
    uint64_t mask[2] = {0, 1ull << 6};  // token 70 only
    if (dw_set_mask(session, mask, 2) != 0) dw_log_failure("set_mask");
  }
  if (is("mask_nothing")) {
    uint64_t mask[2] = {0, 0};
    dw_set_mask(session, mask, 2);
  }
  if (dw_generate(session, &params, tag) != 0) dw_log_failure("generate");
}

DW_ON_START() {
  dw_read_config(&config);
  uint32_t length = 0;
  const char* value = dw_config_find(&config, "mode", &length);
  if (value != NULL && length < sizeof mode) memcpy(mode, value, length);
  begin(1);
  if (is("two")) begin(2);
}

DW_ON_TOKEN(tag, of, token, position) {
  if (is("two")) {
    const int32_t turn = (int32_t)tag;
    dw_emit(&turn, sizeof turn);
  }
  dw_emit(&token, sizeof token);
  ++seen;
  if (is("replace")) return dw_force_token(of, 42) == 0 ? DW_TOKEN_REPLACE : DW_TOKEN_STOP;
  if (seen == 3) {
    if (is("stop")) return DW_TOKEN_STOP;
    if (is("drop")) return DW_TOKEN_DROP;
    if (is("cancel")) dw_cancel(tag);
    if (is("cancel_again")) {
      dw_cancel(tag);
      dw_session_close(of);
      mode[0] = 0;
      begin(tag);
    }
    if (is("fork")) {
      const int32_t copy = dw_session_fork(of, 0);
      const int32_t length = (int32_t)dw_session_length(copy);
      if (length != (int32_t)position) dw_log_text(DW_LOG_ERROR, "the copy holds the token at hand");
      if (dw_sample(copy) != token) dw_log_text(DW_LOG_ERROR, "the copy draws another token");
    }
  }
  return DW_TOKEN_CONTINUE;
}

DW_ON_DONE(tag, of, reason, tokens) {
  const int32_t line[4] = {-1, reason, (int32_t)tokens, (int32_t)dw_session_length(of)};
  (void)tag;
  dw_emit(line, sizeof line);
}
