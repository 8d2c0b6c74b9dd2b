// looks_like: when a file is not the model it was taken for, what it is instead and what to do about it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace driftwood::format {

// A clause for the end of an error message, e.g. "it is a Git LFS pointer, not the file itself: run `git lfs
// pull`". Looks at the first bytes only; always gives something.
std::string looks_like(std::span<const uint8_t> bytes);

bool is_gguf(std::span<const uint8_t> bytes);
// A plausible safetensors start: a header length within the file, then '{'.
bool is_safetensors(std::span<const uint8_t> bytes);

}  // namespace driftwood::format
