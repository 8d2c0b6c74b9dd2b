// DW_UNROLL(n) before a loop of a tile: unrolled whole, so that its arrays become registers. Not under a
// sanitizer, where the checks of every unrolled access would make the tiles take minutes to compile.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DW_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define DW_SANITIZED 1
#endif
#endif

#ifdef DW_SANITIZED
#define DW_UNROLL(n)
#else
#define DW_PRAGMA(text) _Pragma(#text)
#define DW_UNROLL(n) DW_PRAGMA(GCC unroll n)
#endif
