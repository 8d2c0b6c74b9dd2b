// A command: prints its arguments and environment, and exits with their count.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) printf("%s\n", argv[i]);
  const char* home = getenv("HOME");
  fprintf(stderr, "HOME=%s\n", home == NULL ? "(none)" : home);
  return argc == 1 ? 0 : argc;
}
