// Test guest: about 1 MB of memory that is not zero, one session, and a message for each thing that a bench or a test
// wants done. A message is i32s: the command, then its numbers.
#include "driftwood.h"

enum { kAppend = 0, kNext = 1, kWrite = 2 };  // ids: compute them; count: draw and compute; count: write pages of 4 KiB

static uint8_t bulk[880 * 1024];
static int32_t message[9000];
static int32_t session;
static uint32_t writes;

DW_ON_START() {
  uint32_t x = 1;
  for (uint32_t i = 0; i < sizeof bulk; ++i) bulk[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
  session = dw_session_open(0);
  if (session < 0) dw_log_failure("session_open");
}

static void next_token(void) {
  const int32_t token = dw_sample(session);
  if (token < 0 || dw_session_append(session, &token, 1) < 0 || dw_step(session) < 0) return dw_log_failure("next");
  dw_emit(&token, sizeof token);
}

DW_ON_MESSAGE(sender, length) {
  (void)sender;
  if (dw_message_read(message, sizeof message) < 0) return dw_log_failure("message_read");
  if (message[0] == kAppend) {
    if (dw_session_append(session, message + 1, (uint32_t)length / 4 - 1) < 0 || dw_step(session) < 0) {
      dw_log_failure("append");
    }
    return;
  }
  for (int32_t i = 0; i < message[1]; ++i) {
    if (message[0] == kNext) next_token();
    if (message[0] == kWrite) bulk[(uint32_t)i * 4096 % sizeof bulk] = (uint8_t)++writes;
  }
}
