// A guest with state in every place that C has: statics, initialised data, heap, and a deep stack while it
// works. For freeze_test.cc: step() changes all of it and its result depends on all of it.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name))) name

struct node {
  struct node* next;
  uint64_t key;
  char text[40];
};

static struct node* head;
static uint64_t counter;
static uint64_t random_state = 88172645463325252ull;
static char words[4][16] = {"drift", "wood", "floats", "on"};
static unsigned char table[70000];

static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

// Uses the stack in linear memory, so that the hidden stack pointer matters.
static uint64_t deep(int depth, uint64_t seed) {
  volatile uint64_t frame[8];
  for (int i = 0; i < 8; ++i) frame[i] = seed * (uint64_t)(i + 1);
  uint64_t sum = depth > 0 ? deep(depth - 1, seed + 1) : seed;
  for (int i = 0; i < 8; ++i) sum = sum * 31 + frame[i];
  return sum;
}

uint64_t EXPORT(step)(void) {
  ++counter;
  struct node* made = malloc(sizeof *made);
  made->next = head;
  made->key = next_random();
  strncpy(made->text, words[made->key % 4], sizeof made->text);
  head = made;
  if (counter % 5 == 0) {
    struct node* gone = head->next;
    head->next = gone->next;
    free(gone);
  }
  words[counter % 4][counter % 5] ^= 1;
  table[made->key % sizeof table] += 1;
  uint64_t sum = deep((int)(counter % 40), counter);
  for (const struct node* n = head; n != NULL; n = n->next)
    sum = sum * 1099511628211ull + n->key + (uint64_t)n->text[0];
  return sum + (uint64_t)(uintptr_t)made;
}

uint64_t EXPORT(steps_done)(void) { return counter; }

// Recurses until a stack is used up and the guest traps.
uint64_t EXPORT(overflow)(uint64_t seed) { return deep(1 << 30, seed); }
