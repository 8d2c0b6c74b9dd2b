#include "os/small_file.h"

#include <charconv>

#include <fcntl.h>
#include <unistd.h>

#include "os/descriptor.h"

namespace driftwood::os {

std::string_view read_small_file(const char* path, std::span<char> space) {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return {};
  size_t size = 0;
  while (size < space.size()) {
    const ssize_t got = ::read(file.get(), space.data() + size, space.size() - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return {space.data(), size};
}

std::optional<int64_t> leading_number(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<int64_t> number_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    if (text.starts_with(name)) return leading_number(text.substr(name.size()));
    const size_t line = text.find('\n');
    text.remove_prefix(line == std::string_view::npos ? text.size() : line + 1);
  }
  return std::nullopt;
}

}  // namespace driftwood::os
