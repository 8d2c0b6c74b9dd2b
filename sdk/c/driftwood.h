// Driftwood for C guests: growable bytes, token lists, defaults and configuration on top of driftwood_abi.h.
//
// Header only. Memory comes from wasi-libc's malloc; where there is none left the actor ends (trap). Call
// results keep the ABI's convention: negative is an error code.
#ifndef DRIFTWOOD_H
#define DRIFTWOOD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driftwood_abi.h"

// ---- growable bytes, always followed by a 0 ----
typedef struct dw_buffer {
  char* data;
  uint32_t length;
  uint32_t capacity;
} dw_buffer;

static inline void dw_buffer_reserve(dw_buffer* b, uint32_t capacity) {
  if (capacity < b->capacity) return;
  uint32_t grown = b->capacity < 64 ? 64 : b->capacity * 2;
  if (grown <= capacity) grown = capacity + 1;
  char* data = (char*)realloc(b->data, grown);
  if (data == NULL) __builtin_trap();
  b->data = data;
  b->capacity = grown;
}

static inline void dw_buffer_append(dw_buffer* b, const void* bytes, uint32_t length) {
  dw_buffer_reserve(b, b->length + length);
  if (length != 0) memcpy(b->data + b->length, bytes, length);
  b->length += length;
  b->data[b->length] = 0;
}

static inline void dw_buffer_text(dw_buffer* b, const char* text) { dw_buffer_append(b, text, strlen(text)); }
static inline void dw_buffer_clear(dw_buffer* b) { b->length = 0; }
static inline void dw_buffer_free(dw_buffer* b) {
  free(b->data);
  b->data = NULL;
  b->length = b->capacity = 0;
}

static inline void dw_buffer_integer(dw_buffer* b, int64_t value) {
  char text[24];
  dw_buffer_append(b, text, (uint32_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

static inline void dw_buffer_number(dw_buffer* b, double value) {
  char text[40];
  dw_buffer_append(b, text, (uint32_t)snprintf(text, sizeof text, "%.9g", value));
}

// Bytes of the valid UTF-8 character at `text`, 0 if there is none (RFC 3629: no overlong forms, no surrogates).
static inline uint32_t dw_utf8_length(const char* text, uint32_t length) {
  const unsigned char* p = (const unsigned char*)text;
  if (length == 0) return 0;
  if (p[0] < 0x80) return 1;
  const uint32_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  if (p[0] < 0xc2 || p[0] > 0xf4 || length < n) return 0;
  const unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
  if (p[1] < low || p[1] > high) return 0;
  for (uint32_t i = 2; i < n; ++i) {
    if ((p[i] & 0xc0) != 0x80) return 0;
  }
  return n;
}

// A JSON string with its quotes. A byte that is no UTF-8 (an answer may end inside a character) becomes U+FFFD, so
// that the result is JSON whatever the text.
static inline void dw_buffer_json(dw_buffer* b, const char* text, uint32_t length) {
  dw_buffer_append(b, "\"", 1);
  for (uint32_t i = 0; i < length; ++i) {
    const unsigned char c = (unsigned char)text[i];
    const uint32_t whole = dw_utf8_length(text + i, length - i);
    if (whole != 1) {
      dw_buffer_append(b, whole == 0 ? "\xef\xbf\xbd" : text + i, whole == 0 ? 3 : whole);
      if (whole > 1) i += whole - 1;
      continue;
    }
    char escape[8];
    if (c == '"' || c == '\\') {
      escape[0] = '\\', escape[1] = (char)c;
      dw_buffer_append(b, escape, 2);
    } else if (c < 0x20) {
      dw_buffer_append(b, escape, (uint32_t)snprintf(escape, sizeof escape, "\\u%04x", c));
    } else {
      dw_buffer_append(b, text + i, 1);
    }
  }
  dw_buffer_append(b, "\"", 1);
}

// ---- whole results of calls that fill a buffer; each replaces the content ----
static inline int32_t dw_read_message(dw_buffer* b, int32_t length) {
  dw_buffer_clear(b);
  dw_buffer_reserve(b, (uint32_t)length);
  const int32_t got = dw_message_read(b->data, (uint32_t)length);
  if (got < 0) return got;
  b->length = (uint32_t)length;
  b->data[b->length] = 0;
  return got;
}

static inline int32_t dw_read_config(dw_buffer* b) {
  dw_buffer_clear(b);
  const int32_t length = dw_config_read(NULL, 0);
  if (length < 0) return length;
  dw_buffer_reserve(b, (uint32_t)length);
  dw_config_read(b->data, (uint32_t)length);
  b->length = (uint32_t)length;
  b->data[b->length] = 0;
  return length;
}

static inline int32_t dw_render_chat(const dw_buffer* json, uint32_t flags, dw_buffer* out) {
  dw_buffer_clear(out);
  dw_buffer_reserve(out, 1024);
  int32_t length = dw_chat_template(json->data, json->length, flags, out->data, out->capacity - 1);
  if (length < 0) return length;
  if ((uint32_t)length >= out->capacity) {
    dw_buffer_reserve(out, (uint32_t)length);
    length = dw_chat_template(json->data, json->length, flags, out->data, out->capacity - 1);
    if (length < 0) return length;
  }
  out->length = (uint32_t)length;
  out->data[out->length] = 0;
  return length;
}

static inline void dw_log_text(int32_t level, const char* text) { dw_log(level, text, strlen(text)); }
// "what: text of last_error" as an error in the log.
static inline void dw_log_failure(const char* what) {
  char text[512];
  const int used = snprintf(text, sizeof text, "%s: ", what);
  int32_t length = dw_last_error(text + used, sizeof text - (uint32_t)used);
  if (length > (int32_t)sizeof text - used) length = (int32_t)sizeof text - used;
  dw_log(DW_LOG_ERROR, text, (uint32_t)(used + length));
}

// ---- token lists ----
typedef struct dw_tokens {
  int32_t* ids;
  uint32_t count;
  uint32_t capacity;
} dw_tokens;

static inline void dw_tokens_reserve(dw_tokens* t, uint32_t capacity) {
  if (capacity <= t->capacity) return;
  uint32_t grown = t->capacity < 64 ? 64 : t->capacity * 2;
  if (grown < capacity) grown = capacity;
  int32_t* ids = (int32_t*)realloc(t->ids, grown * sizeof(int32_t));
  if (ids == NULL) __builtin_trap();
  t->ids = ids;
  t->capacity = grown;
}

static inline void dw_tokens_push(dw_tokens* t, int32_t id) {
  dw_tokens_reserve(t, t->count + 1);
  t->ids[t->count++] = id;
}

static inline int32_t dw_tokenize_text(const char* text, uint32_t length, uint32_t flags, dw_tokens* t) {
  dw_tokens_reserve(t, length / 3 + 16);
  int32_t count = dw_tokenize(text, length, flags, t->ids, t->capacity);
  if (count < 0) return count;
  if ((uint32_t)count > t->capacity) {
    dw_tokens_reserve(t, (uint32_t)count);
    count = dw_tokenize(text, length, flags, t->ids, t->capacity);
    if (count < 0) return count;
  }
  t->count = (uint32_t)count;
  return count;
}

// ---- defaults ----
static inline dw_sampling dw_sampling_defaults(void) {
  dw_sampling s;
  memset(&s, 0, sizeof s);
  s.size = sizeof s;
  s.top_p = 1.0f;
  s.repetition_penalty = 1.0f;
  s.penalty_last_n = 64;
  return s;
}

static inline dw_session_params dw_session_defaults(void) {
  dw_session_params p;
  memset(&p, 0, sizeof p);
  p.size = sizeof p;
  p.sampling = dw_sampling_defaults();
  return p;
}

static inline dw_generate_params dw_generate_defaults(int64_t max_tokens) {
  dw_generate_params p;
  memset(&p, 0, sizeof p);
  p.size = sizeof p;
  p.flags = DW_GENERATE_STOP_AT_END;
  p.max_tokens = max_tokens;
  return p;
}

// ---- configuration: lines of key=value, as the example actors read it ----
// The value of `key`, up to the end of its line; NULL if it is not there.
static inline const char* dw_config_find(const dw_buffer* config, const char* key, uint32_t* length) {
  const uint32_t key_length = strlen(key);
  const char* at = config->data;
  const char* end = at == NULL ? at : at + config->length;
  while (at < end) {
    const char* line_end = (const char*)memchr(at, '\n', (size_t)(end - at));
    if (line_end == NULL) line_end = end;
    if ((uint32_t)(line_end - at) > key_length && memcmp(at, key, key_length) == 0 && at[key_length] == '=') {
      *length = (uint32_t)(line_end - at) - key_length - 1;
      return at + key_length + 1;
    }
    at = line_end + 1;
  }
  return NULL;
}

static inline double dw_config_number(const dw_buffer* config, const char* key, double otherwise) {
  uint32_t length = 0;
  const char* value = dw_config_find(config, key, &length);
  return value == NULL ? otherwise : strtod(value, NULL);
}

static inline uint64_t dw_config_u64(const dw_buffer* config, const char* key, uint64_t otherwise) {
  uint32_t length = 0;
  const char* value = dw_config_find(config, key, &length);
  return value == NULL ? otherwise : strtoull(value, NULL, 10);
}

// temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty, seed.
static inline dw_sampling dw_config_sampling(const dw_buffer* config) {
  dw_sampling s = dw_sampling_defaults();
  s.temperature = (float)dw_config_number(config, "temperature", s.temperature);
  s.top_k = (int32_t)dw_config_number(config, "top_k", s.top_k);
  s.top_p = (float)dw_config_number(config, "top_p", s.top_p);
  s.min_p = (float)dw_config_number(config, "min_p", s.min_p);
  s.repetition_penalty = (float)dw_config_number(config, "repetition_penalty", s.repetition_penalty);
  s.presence_penalty = (float)dw_config_number(config, "presence_penalty", s.presence_penalty);
  s.frequency_penalty = (float)dw_config_number(config, "frequency_penalty", s.frequency_penalty);
  s.seed = dw_config_u64(config, "seed", s.seed);
  return s;
}

#endif  // DRIFTWOOD_H
