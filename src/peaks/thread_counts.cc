#include "peaks/thread_counts.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

namespace driftwood::peaks {

Result<std::vector<int>> thread_counts(std::span<const char* const> arguments, int cores, int processors) {
  std::vector<int> counts;
  for (const char* text : arguments) {
    int count = 0;
    const char* end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, count);
    if (error != std::errc() || rest != end || count < 1 || count > processors) {
      return invalid_argument("'" + std::string(text) + "' is no number of threads; this process may use " +
                              std::to_string(processors) + (processors == 1 ? " processor" : " processors"));
    }
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  if (counts.empty()) {
    counts.push_back(1);
    if (cores > 1) counts.push_back(cores);
  }
  return counts;
}

}  // namespace driftwood::peaks
