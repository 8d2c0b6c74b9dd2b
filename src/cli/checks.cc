#include "cli/checks.h"

#include <charconv>

namespace driftwood::cli {

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

}  // namespace driftwood::cli
