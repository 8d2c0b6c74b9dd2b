// Guests built from sdk/actors and carried inside the program (cmake/embed.cmake).
#pragma once

#include <cstdint>
#include <span>

extern "C" {
extern const unsigned char dw_chat_begin[], dw_chat_end[];
extern const unsigned char dw_probe_begin[], dw_probe_end[];
extern const unsigned char dw_tokens_begin[], dw_tokens_end[];
}

namespace driftwood::cli {

inline std::span<const uint8_t> chat_guest() { return {dw_chat_begin, dw_chat_end}; }
inline std::span<const uint8_t> probe_guest() { return {dw_probe_begin, dw_probe_end}; }
inline std::span<const uint8_t> tokens_guest() { return {dw_tokens_begin, dw_tokens_end}; }

}  // namespace driftwood::cli
