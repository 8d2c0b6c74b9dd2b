// What the rewriting found out about a module, from the bridge's JSON into our types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "wasm/runtime.h"

namespace driftwood::wasm {

struct ParsedReport {
  ModuleReport report;
  uint64_t memory_min_pages = 0;  // Wasm pages; 0 without a memory
  bool has_memory = false;
};

// The bridge wrote it: anything unexpected is our bug or a mismatched bridge, told as internal.
Result<ParsedReport> parse_module_report(std::string_view json);

}  // namespace driftwood::wasm
