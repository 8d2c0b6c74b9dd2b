#include "cli/checks.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace driftwood::cli {
namespace {

// Of a unit behind a number; 0: no unit.
uint64_t unit_bytes(std::string_view unit) {
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  if (unit.empty() || unit == "B") return 1;
  const size_t power = std::string_view("kMGT").find(unit.front() == 'K' ? 'k' : unit.front());
  const bool binary = unit.substr(1) == "iB";
  if (power == std::string_view::npos || (!binary && unit.substr(1) != "B")) return 0;
  uint64_t bytes = 1;
  for (size_t i = 0; i <= power; ++i) bytes *= binary ? 1024 : 1000;
  return bytes;
}

}  // namespace

CLI::Validator whole_number(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        if (whole && value >= least && value <= most) return {};
        return "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
               std::to_string(most);
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) { return text.empty() ? std::string("is empty") : std::string(); }, "");
}

CLI::Validator byte_size() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        uint64_t value = 0;
        const char* const text_end = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data(), text_end, value);
        const uint64_t unit = unit_bytes({end, static_cast<size_t>(text_end - end)});
        if (error != std::errc() || unit == 0 || value > kMostInt64 / unit)
          return "'" + text + "' is no number of bytes such as 4096, 500MB or 2GiB";
        text = std::to_string(value * unit);
        return {};
      },
      "");
}

}  // namespace driftwood::cli
