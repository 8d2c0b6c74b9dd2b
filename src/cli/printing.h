// How commands print: JSON, tables, sizes, times, and texts from files that a terminal must not obey.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace driftwood::cli {

using Json = nlohmann::ordered_json;

// To standard output. Bytes that are not UTF-8 become U+FFFD.
void print_json(const Json& json);

// Control characters become '?'.
std::string printable(std::string_view text);
// In quotes, line breaks and the like escaped.
std::string in_quotes(std::string_view text);

std::string size_text(uint64_t bytes);  // "1.5 MiB"
std::string time_text(uint64_t ns);     // UTC
std::string count_text(uint64_t n, const char* one, const char* many);

// Hashes by as many of their first digits as tell them apart, 12 at least.
class ShortHashes {
 public:
  explicit ShortHashes(std::set<std::string> hashes) : hashes_(std::move(hashes)) {}
  std::string of(const std::string& hash) const;

 private:
  std::set<std::string> hashes_;
};
std::string short_hash(const std::string& hash);  // 12 digits

// Rows of cells, columns aligned; the first row is a heading.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace driftwood::cli
