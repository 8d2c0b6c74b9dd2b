// hello: a plain WASI command, blocking style. Its whole life is main(); what it prints appears when it returns.
#include "driftwood.h"

int main(int argc, char** argv) {
  char name[64] = {0};
  dw_self_name(name, sizeof name - 1);
  printf("Hello from %s\n", name);
  const char* prompt = argc > 1 ? argv[1] : "Once upon a time";
  const int32_t session = dw_session_open(NULL);
  if (session < 0) {
    printf("(no model here)\n");
    return 0;
  }
  dw_tokens tokens = {NULL, 0, 0};
  if (dw_tokenize_text(prompt, strlen(prompt), DW_TOKENIZE_ADD_SPECIAL, &tokens) < 0) {
    printf("(the model has no tokenizer)\n");
    return 0;
  }
  dw_session_append(session, tokens.ids, tokens.count);
  printf("%s", prompt);
  for (int i = 0; i < 16; ++i) {
    if (dw_step(session) < 0) break;
    const int32_t token = dw_sample(session);
    if (token < 0 || dw_end_token(token) == 1) break;
    char text[64];
    int32_t length = dw_token_text(token, text, sizeof text);
    if (length > (int32_t)sizeof text) length = sizeof text;
    if (length > 0) fwrite(text, 1, (size_t)length, stdout);
    dw_session_append(session, &token, 1);
  }
  printf("\n");
  return 0;
}
