// Numbers out of the small text files of /proc and /sys, without allocating.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace driftwood::os {

// The beginning of a file, as much as fits into `space`; empty if it cannot be read.
std::string_view read_small_file(const char* path, std::span<char> space);

// The number that `text` starts with, blanks skipped; none if it starts with anything else ("max").
std::optional<int64_t> leading_number(std::string_view text);

// The number behind the line start `name`, as in "MemAvailable:   123 kB" or "inactive_file 456".
std::optional<int64_t> number_of(std::string_view text, std::string_view name);

}  // namespace driftwood::os
