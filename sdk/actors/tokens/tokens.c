// tokens: event style on bare token ids. A message holds i32 ids; each generated id is emitted as 4 bytes. Works with
// models that have no tokenizer. Several messages at once are several generates that run in turn.
#include "driftwood.h"

static dw_buffer config, message;
static dw_session_params params;
static int64_t max_tokens;
static int64_t last_tag;

DW_ON_START() {
  dw_read_config(&config);
  params = dw_session_defaults();
  params.sampling = dw_config_sampling(&config);
  max_tokens = (int64_t)dw_config_u64(&config, "max_tokens", 16);
}

DW_ON_MESSAGE(sender, length) {
  (void)sender;
  if (dw_read_message(&message, length) < 0) return dw_log_failure("message_read");
  const int32_t session = dw_session_open(&params);
  if (session < 0) return dw_log_failure("session_open");
  const dw_generate_params generate = dw_generate_defaults(max_tokens);
  if (dw_session_append(session, (const int32_t*)message.data, message.length / 4) < 0 ||
      dw_generate(session, &generate, ++last_tag) < 0) {
    dw_log_failure("generate");
    dw_session_close(session);
  }
}

DW_ON_TOKEN(tag, session, token, position) {
  (void)tag, (void)session, (void)position;
  dw_emit(&token, sizeof token);
  return DW_TOKEN_CONTINUE;
}

DW_ON_DONE(tag, session, reason, tokens) {
  (void)tag, (void)tokens;
  if (reason == DW_DONE_ERROR || reason == DW_DONE_LIMIT) dw_log_failure("generate");
  dw_session_close(session);
}
