// Driftwood guest ABI, version 1: constants, structs and imports as a C header. docs/abi.md is the prose.
//
// The module name of every import is "driftwood". Pointers are i32 offsets into the guest's linear memory.
// Results are a count, a handle or 0; a negative result is the error code with its sign turned (DW_E_...),
// and dw_last_error() has its text. A pointer outside the memory ends the actor; everything else is a code.
// Calls that fill a buffer return the full length and write at most `capacity`: ask again if it was larger.
// Buffers are never kept: the host reads or writes them before the call returns.
// Structs begin with their own size, so that later versions can append fields. Layouts are fixed (little
// endian) and checked below. Usable from C11 and C++ and free of any library.
#ifndef DRIFTWOOD_ABI_H
#define DRIFTWOOD_ABI_H

#include <stdint.h>

#ifdef __cplusplus
#define DW_STATIC_ASSERT(condition) static_assert(condition, #condition)
extern "C" {
#else
#define DW_STATIC_ASSERT(condition) _Static_assert(condition, #condition)
#endif

#define DW_ABI_VERSION 1

// ---- error codes: results are the negative of these ----
enum {
  DW_E_CANCELLED = -1,
  DW_E_UNKNOWN = -2,
  DW_E_INVALID_ARGUMENT = -3,
  DW_E_DEADLINE_EXCEEDED = -4,
  DW_E_NOT_FOUND = -5,
  DW_E_ALREADY_EXISTS = -6,
  DW_E_PERMISSION_DENIED = -7,
  DW_E_RESOURCE_EXHAUSTED = -8,   // a limit of this actor
  DW_E_FAILED_PRECONDITION = -9,  // wrong order of calls
  DW_E_ABORTED = -10,
  DW_E_OUT_OF_RANGE = -11,
  DW_E_UNIMPLEMENTED = -12,
  DW_E_INTERNAL = -13,
  DW_E_UNAVAILABLE = -14,  // no model, no tokenizer or no device here
  DW_E_DATA_LOSS = -15
};

enum { DW_LOG_DEBUG = 0, DW_LOG_INFO = 1, DW_LOG_WARNING = 2, DW_LOG_ERROR = 3 };
enum { DW_CLOCK_REALTIME = 0, DW_CLOCK_MONOTONIC = 1 };

// tokenize flags
enum { DW_TOKENIZE_ADD_SPECIAL = 1, DW_TOKENIZE_PARSE_SPECIAL = 2 };
// detokenize flags
enum { DW_DETOKENIZE_SHOW_SPECIAL = 1 };
// chat_template flags
enum { DW_CHAT_GENERATION_PROMPT = 1 };
// dw_generate.flags
enum { DW_GENERATE_STOP_AT_END = 1 };  // an end token stops; it is neither reported nor appended

// Results of dw_on_token.
enum {
  DW_TOKEN_CONTINUE = 0,  // append the token, go on
  DW_TOKEN_STOP = 1,      // append the token, then stop
  DW_TOKEN_REPLACE = 2,   // append the token given to dw_force_token instead, go on
  DW_TOKEN_DROP = 3       // do not append it, stop
};

// `reason` of dw_on_done.
enum {
  DW_DONE_MAX_TOKENS = 0,    // dw_generate.max_tokens reached
  DW_DONE_END_TOKEN = 1,     // the model ended its answer
  DW_DONE_STOPPED = 2,       // dw_on_token said so
  DW_DONE_CANCELLED = 3,     // dw_cancel
  DW_DONE_CONTEXT_FULL = 4,  // the session holds its last token
  DW_DONE_LIMIT = 5,         // the actor's token limit
  DW_DONE_ERROR = 6          // dw_last_error has the text
};

#define DW_OUTSIDE 0  // sender and receiver id of the world outside

// ---- structs ----
typedef struct dw_sampling {
  uint32_t size;             // sizeof(dw_sampling)
  float temperature;         // 0: the best token always
  int32_t top_k;             // 0: off
  float top_p;               // 1: off
  float min_p;               // 0: off
  float repetition_penalty;  // 1: off
  float presence_penalty;
  float frequency_penalty;
  int32_t penalty_last_n;  // 0: off, -1: all
  uint32_t bias_count;     // entries of the two arrays below, at most 4096
  uint64_t seed;           // a draw depends on (seed, stream, position) only
  uint64_t stream;
  uint32_t bias_ids;     // offset of int32[bias_count], aligned to 4
  uint32_t bias_values;  // offset of float[bias_count], aligned to 4
} dw_sampling;

typedef struct dw_session_params {
  uint32_t size;       // sizeof(dw_session_params)
  uint32_t reserved;   // 0
  int64_t max_tokens;  // of the session; 0: the engine's context
  dw_sampling sampling;
} dw_session_params;

typedef struct dw_generate_params {
  uint32_t size;       // sizeof(dw_generate_params)
  uint32_t flags;      // DW_GENERATE_...
  int64_t max_tokens;  // 0: until the session is full
  uint32_t run_ahead;  // 0: lock-step, the only mode of version 1
  uint32_t reserved;   // 0
} dw_generate_params;

// C[m,n] = A[m,k] B[k,n] in f32, row-major; strides in elements; offsets in bytes, aligned to 4.
// lda >= k, ldb >= n, ldc >= n. The span of C must not overlap that of A or B.
typedef struct dw_gemm_params {
  uint64_t m, n, k;
  uint64_t a_offset, lda;
  uint64_t b_offset, ldb;
  uint64_t c_offset, ldc;
} dw_gemm_params;

// out[r] = softmax(x[r]) over `width` f32 values of each of `rows` rows. out may be x, else no overlap.
typedef struct dw_softmax_params {
  uint64_t rows, width;
  uint64_t x_offset, out_offset;
} dw_softmax_params;

DW_STATIC_ASSERT(sizeof(dw_sampling) == 64);
DW_STATIC_ASSERT(sizeof(dw_session_params) == 80);
DW_STATIC_ASSERT(sizeof(dw_generate_params) == 24);
DW_STATIC_ASSERT(sizeof(dw_gemm_params) == 72);
DW_STATIC_ASSERT(sizeof(dw_softmax_params) == 32);

#ifdef __wasm__
#define DW_IMPORT(name) __attribute__((import_module("driftwood"), import_name(#name))) extern

// ---- info ----
DW_IMPORT(abi_version) int32_t dw_abi_version(void);
DW_IMPORT(log) int32_t dw_log(int32_t level, const void* text, uint32_t length);
DW_IMPORT(clock_ns) int64_t dw_clock_ns(int32_t clock);
DW_IMPORT(random) int32_t dw_random(void* out, uint32_t length);
DW_IMPORT(last_error) int32_t dw_last_error(void* out, uint32_t capacity);
DW_IMPORT(self_name) int32_t dw_self_name(void* out, uint32_t capacity);
DW_IMPORT(config_read) int32_t dw_config_read(void* out, uint32_t capacity);

// ---- text ----
DW_IMPORT(tokenize)
int32_t dw_tokenize(const void* text, uint32_t length, uint32_t flags, int32_t* out, uint32_t capacity);
DW_IMPORT(detokenize)
int32_t dw_detokenize(const int32_t* ids, uint32_t count, uint32_t flags, void* out, uint32_t capacity);
DW_IMPORT(token_text) int32_t dw_token_text(int32_t id, void* out, uint32_t capacity);
DW_IMPORT(chat_template)
int32_t dw_chat_template(const void* json, uint32_t length, uint32_t flags, void* out, uint32_t capacity);
DW_IMPORT(end_token) int32_t dw_end_token(int32_t id);  // 1: ends an answer
DW_IMPORT(vocab_size) int32_t dw_vocab_size(void);

// ---- session ----
DW_IMPORT(max_context) int64_t dw_max_context(void);
DW_IMPORT(session_open) int32_t dw_session_open(const dw_session_params* params);  // null: defaults
DW_IMPORT(session_fork) int32_t dw_session_fork(int32_t session, uint64_t stream);
DW_IMPORT(session_append) int32_t dw_session_append(int32_t session, const int32_t* ids, uint32_t count);
DW_IMPORT(session_truncate) int32_t dw_session_truncate(int32_t session, int64_t length);
DW_IMPORT(session_length) int64_t dw_session_length(int32_t session);
DW_IMPORT(session_close) int32_t dw_session_close(int32_t session);
DW_IMPORT(session_set_sampling)
int32_t dw_session_set_sampling(int32_t session, const dw_sampling* sampling);

// ---- generation, blocking style ----
DW_IMPORT(step) int32_t dw_step(int32_t session);
DW_IMPORT(sample) int32_t dw_sample(int32_t session);
DW_IMPORT(logits) int32_t dw_logits(int32_t session, float* out, uint32_t capacity);
DW_IMPORT(set_mask) int32_t dw_set_mask(int32_t session, const uint64_t* words, uint32_t count);

// ---- generation, event style ----
DW_IMPORT(generate) int32_t dw_generate(int32_t session, const dw_generate_params* params, int64_t tag);
DW_IMPORT(cancel) int32_t dw_cancel(int64_t tag);
DW_IMPORT(force_token) int32_t dw_force_token(int32_t session, int32_t id);

// ---- messages ----
DW_IMPORT(message_read) int32_t dw_message_read(void* out, uint32_t capacity);
DW_IMPORT(send)
int32_t dw_send(const void* name, uint32_t name_length, const void* data, uint32_t length);
DW_IMPORT(send_to) int32_t dw_send_to(int64_t actor, const void* data, uint32_t length);
DW_IMPORT(reply) int32_t dw_reply(const void* data, uint32_t length);
DW_IMPORT(emit) int32_t dw_emit(const void* data, uint32_t length);

// ---- tensors on the guest's own memory ----
DW_IMPORT(gemm) int32_t dw_gemm(const dw_gemm_params* params);
DW_IMPORT(softmax) int32_t dw_softmax(const dw_softmax_params* params);

// ---- timers ----
DW_IMPORT(timer_set) int32_t dw_timer_set(int64_t delay_ns, int64_t tag);
DW_IMPORT(timer_cancel) int32_t dw_timer_cancel(int64_t tag);

// ---- the actor's own state: done at the rest point after the handler ----
DW_IMPORT(actor_fork)
int32_t dw_actor_fork(const void* name, uint32_t name_length, uint64_t stream, int64_t tag);
DW_IMPORT(checkpoint) int32_t dw_checkpoint(const void* name, uint32_t name_length);

// ---- handlers: define those you need, with DW_HANDLER before them ----
//   void    dw_on_start(void)                       once, before anything else
//   void    dw_on_message(int64_t sender, int32_t length)
//   int32_t dw_on_token(int64_t tag, int32_t session, int32_t token, int64_t position)
//   void    dw_on_done(int64_t tag, int32_t session, int32_t reason, int64_t tokens)
//   void    dw_on_timer(int64_t tag)
//   void    dw_on_fork(int64_t tag, int64_t child)  child 0: this is the copy; negative: an error code
#define DW_HANDLER(name) __attribute__((export_name(#name), used))
#ifdef __cplusplus
#define DW_EXTERN_C extern "C"
#else
#define DW_EXTERN_C
#endif
#define DW_ON_START() DW_EXTERN_C DW_HANDLER(dw_on_start) void dw_on_start(void)
#define DW_ON_MESSAGE(sender, length) \
  DW_EXTERN_C DW_HANDLER(dw_on_message) void dw_on_message(int64_t sender, int32_t length)
#define DW_ON_TOKEN(tag, session, token, position) \
  DW_EXTERN_C DW_HANDLER(dw_on_token)              \
  int32_t dw_on_token(int64_t tag, int32_t session, int32_t token, int64_t position)
#define DW_ON_DONE(tag, session, reason, tokens)                                                   \
  DW_EXTERN_C DW_HANDLER(dw_on_done) void dw_on_done(int64_t tag, int32_t session, int32_t reason, \
                                                     int64_t tokens)
#define DW_ON_FORK(tag, child) DW_EXTERN_C DW_HANDLER(dw_on_fork) void dw_on_fork(int64_t tag, int64_t child)
#define DW_ON_TIMER(tag) DW_EXTERN_C DW_HANDLER(dw_on_timer) void dw_on_timer(int64_t tag)
#endif  // __wasm__

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // DRIFTWOOD_ABI_H
