/* dw_bridge.h: Driftwood's C ABI to its Rust libraries.
 *
 * What is here: BLAKE3, tokenizers, chat templates, and the rewriting that makes a Wasm module snapshottable.
 * Wasmtime's own C API (wasmtime.h) comes from the same archive, libdriftwood_bridge.a.
 *
 * Conventions, for every function unless it says otherwise:
 *  - Errors. A dwb_status of 0 is success. A function that makes an object returns NULL instead. Either way,
 *    if `err` is not NULL it then holds a message for a person: UTF-8, with a NUL behind it that `len` does
 *    not count. On success `err` is left as it was. On error outputs are left as they were.
 *    Nothing throws or unwinds through this boundary; a bug inside is DWB_INTERNAL.
 *  - Inputs are borrowed for the time of the call. A NULL pointer is allowed where its length is 0.
 *    Texts are UTF-8, with a length and without a NUL; anything else is DWB_INVALID_ARGUMENT.
 *  - Outputs (dwb_buf, dwb_ids) belong to the caller, who sets them to all zero before their first use and
 *    frees them with dwb_buf_free / dwb_ids_free. A call replaces what they held and reuses the allocation,
 *    so one buffer can serve a whole loop. Their allocation is Rust's: never free() or realloc() it.
 *  - Threads. Functions that take a pointer to const may be called on one object from several threads at
 *    once. A dwb_hasher is for one thread at a time. There is no global state.
 */
#ifndef DW_BRIDGE_H_
#define DW_BRIDGE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statuses and buffers ---------------------------------------------------------------------------- */

typedef int32_t dwb_status;
enum {
  DWB_OK = 0,
  DWB_INVALID_ARGUMENT = 1, /* the input is wrong: malformed, out of range, not UTF-8, NULL */
  DWB_UNSUPPORTED = 2,      /* the input may be right, but this is not implemented; the message names it */
  DWB_INTERNAL = 3          /* a bug in the bridge or below it */
};

typedef struct dwb_buf {
  uint8_t* data;
  size_t len;
  size_t cap;
} dwb_buf;

typedef struct dwb_ids {
  uint32_t* data;
  size_t len; /* in ids, as is cap */
  size_t cap;
} dwb_ids;

/* Frees the allocation and sets the struct to all zero. NULL and an empty one are allowed. */
void dwb_buf_free(dwb_buf* buf);
void dwb_ids_free(dwb_ids* ids);

/* A static text with the bridge's version and Wasmtime's. */
const char* dwb_version(void);

/* ---- BLAKE3 ------------------------------------------------------------------------------------------ */

/* One thread does 7 to 9 GB/s if the pieces are 16 KiB or more; small pieces are much slower. */
dwb_status dwb_blake3(const uint8_t* data, size_t len, uint8_t out[32]);

typedef struct dwb_hasher dwb_hasher;
dwb_hasher* dwb_hasher_new(void);
dwb_status dwb_hasher_update(dwb_hasher* hasher, const uint8_t* data, size_t len);
/* The digest of all that was added so far; more may be added afterwards. */
dwb_status dwb_hasher_finish(const dwb_hasher* hasher, uint8_t out[32]);
void dwb_hasher_reset(dwb_hasher* hasher);
void dwb_hasher_free(dwb_hasher* hasher);

/* ---- tokenizers -------------------------------------------------------------------------------------- */

/* Immutable once made. Ids are positions in the model's vocabulary.
 * A *special* token is a control token such as <|im_start|>: added with `special: true` in a tokenizer.json,
 * type 2 (unknown) or 3 (control) in a GGUF file. User-defined tokens are not special. */
typedef struct dwb_tokenizer dwb_tokenizer;

/* From a Hugging Face tokenizer.json. Its truncation and padding settings are ignored. */
dwb_tokenizer* dwb_tokenizer_from_json(const uint8_t* json, size_t len, dwb_buf* err);

typedef struct dwb_str {
  const char* data;
  size_t len;
} dwb_str;

/* A byte-level BPE vocabulary as GGUF metadata carries it (tokenizer.ggml.model "gpt2"). The arrays are
 * borrowed for the call only. */
typedef struct dwb_bpe_spec {
  const dwb_str* tokens; /* tokenizer.ggml.tokens, in byte-level spelling ("\u0120the") */
  size_t n_tokens;
  const int32_t* types; /* tokenizer.ggml.token_type, n_tokens of them, or NULL: all normal.
                           1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte */
  const dwb_str* merges; /* tokenizer.ggml.merges, each "left right", best first */
  size_t n_merges;
  dwb_str pre;         /* tokenizer.ggml.pre; empty counts as "default". A name that is not known is
                          DWB_UNSUPPORTED, and dwb_tokenizer_from_bpe says it in `err` */
  int64_t bos_id;      /* -1: none */
  int64_t eos_id;      /* -1: none */
  int32_t add_bos;     /* 0, 1, or -1: as is usual for `pre` (the file does not say) */
  int32_t add_eos;     /* 0, 1, or -1: likewise */
  int32_t ignore_merges; /* a word that is a token is taken whole: 0, 1, or -1: as is usual for `pre` */
} dwb_bpe_spec;

/* Two equal tokens that are not empty, and merges whose halves or result are no tokens, are refused: `err` begins
 * with the array's name and says which. */
dwb_tokenizer* dwb_tokenizer_from_bpe(const dwb_bpe_spec* spec, dwb_buf* err);

void dwb_tokenizer_free(dwb_tokenizer* tokenizer);

/* Text to ids.
 * add_special: put the model's BOS/EOS (or its post-processor's tokens) around the text.
 * parse_special: 1: text that spells a special token becomes that token. 0: it is plain text like any other;
 * use this for text that comes from a user. User-defined tokens are matched in either case. */
dwb_status dwb_tokenizer_encode(const dwb_tokenizer* tokenizer, const char* text, size_t len, int add_special,
                                int parse_special, dwb_ids* out, dwb_buf* err);

/* Ids to bytes. The bytes may end in, or hold, an incomplete UTF-8 sequence: they are never replaced by
 * U+FFFD, so the decoded pieces of a stream put together are the decoded whole. (For families that are
 * neither byte-level nor SentencePiece-like, WordPiece for one, the library's own text is returned.)
 * skip_special: leave special tokens out. Ids that name no token decode to nothing.
 * A SentencePiece-like decoder drops one leading space at the start of `ids`. */
dwb_status dwb_tokenizer_decode(const dwb_tokenizer* tokenizer, const uint32_t* ids, size_t n, int skip_special,
                                dwb_buf* out, dwb_buf* err);

/* The bytes that one id stands for, special tokens included (their spelling). `is_special` may be NULL.
 * An id that names no token is DWB_INVALID_ARGUMENT. Needs no allocation once `out` has grown. */
dwb_status dwb_tokenizer_token_bytes(const dwb_tokenizer* tokenizer, uint32_t id, dwb_buf* out, int* is_special,
                                     dwb_buf* err);

/* One more than the highest id. A model's logits may have more rows than that, never fewer. */
size_t dwb_tokenizer_vocab_size(const dwb_tokenizer* tokenizer);

/* The id of a token by its spelling in the vocabulary. DWB_INVALID_ARGUMENT if there is none; `id` is then
 * left as it was. */
dwb_status dwb_tokenizer_token_to_id(const dwb_tokenizer* tokenizer, const char* text, size_t len, uint32_t* id);

/* ---- chat templates ---------------------------------------------------------------------------------- */

/* Renders a Jinja chat template as Hugging Face's apply_chat_template does (trim_blocks, lstrip_blocks, one
 * trailing newline dropped, Python's spelling of values, raise_exception, strftime_now, tojson without HTML
 * escapes, {% generation %}, break and continue).
 *
 * json_context is an object: {"messages": [...], "add_generation_prompt": true, "bos_token": "...",
 * "eos_token": "...", "tools": [...], ...}; every key is a variable of the template, order is kept.
 * The key "__now" sets the time for strftime_now: seconds since 1970 (taken as UTC). Without it the clock
 * decides, in UTC, and the result is not reproducible.
 *
 * A template is untrusted input: work, recursion and output (16 MiB) are bounded; running into a bound
 * is DWB_INVALID_ARGUMENT like any other error of the template, with the line in `err`. */
dwb_status dwb_template_render(const char* tmpl, size_t tmpl_len, const char* json_context, size_t json_len,
                               dwb_buf* out, dwb_buf* err);

/* ---- Wasm modules ------------------------------------------------------------------------------------ */

/* Validates a core module (binary format, at most 64 MiB) and rewrites it so that its state can be saved and
 * restored. Code is copied, never re-encoded; function, type, global and memory indices keep their meaning.
 *
 *  - Every mutable global that the module defines is exported as "__dw_global_<index>", and memory 0 as
 *    "__dw_memory", in addition to whatever names they had.
 *  - Active data segments become passive. The exported function "__dw_init" () -> () does what instantiation
 *    would have done: copies each (trapping if one is out of bounds), drops it, then calls the start
 *    function. A fresh start calls it once.
 *  - "__dw_drop" () -> () only drops those segments: a restore calls it instead, once, so that a later
 *    memory.init of the guest sees what it would have seen. It writes to no memory and runs no guest code.
 *  - Names that begin with "__dw_" are reserved: a module that exports one is DWB_INVALID_ARGUMENT
 *    (a module that was prepared before is the usual case).
 *
 * report_json (may be NULL) receives an object; keys may be added, never removed:
 *   snapshot_blockers [text]   why the module cannot be snapshotted; empty if it can. It can run anyway.
 *   notes             [text]   accepted, but worth knowing
 *   globals           [{index, type, export}]     the mutable globals to save; type i32 i64 f32 f64 v128 or a
 *                                                 reference type (then there is a blocker, too)
 *   memory            null | {min, max|null, shared, memory64, page_size, imported, export}   sizes in pages
 *   memories, tables, data_segments, data_bytes   counts (data_bytes: of the active segments)
 *   had_start         bool
 *   imports           [{module, name, params [type], results [type]}]        functions only
 *   exports           [{name, kind, index, params?, results?}]  kind: func global memory table tag; the
 *                                                               original ones, without the reserved names
 *   module_hash       BLAKE3 of the input, hex
 * A malformed or invalid module is DWB_INVALID_ARGUMENT with the offset in `err`; components are
 * DWB_UNSUPPORTED. About 10 ms for a module of 1 MB. */
dwb_status dwb_module_prepare(const uint8_t* wasm, size_t len, dwb_buf* out_wasm, dwb_buf* report_json,
                              dwb_buf* err);

#ifdef __cplusplus
}
#endif

#endif /* DW_BRIDGE_H_ */
