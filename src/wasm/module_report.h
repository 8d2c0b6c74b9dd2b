// What the rewriting found out about a module, from the bridge's JSON into our types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "wasm/runtime.h"

namespace driftwood::wasm {

// A mutable global that the module defines.
struct GlobalDeclaration {
  uint32_t index;
  GlobalType type;
};

struct ParsedReport {
  ModuleReport report;
  uint64_t memory_min_pages = 0;             // Wasm pages; 0 without a memory
  std::optional<uint64_t> memory_max_pages;  // of the module's own
  std::vector<GlobalDeclaration> globals;    // by ascending index; without those that hold references
  bool has_reference_globals = false;
  bool has_memory = false;
};

// The bridge wrote it: anything unexpected is our bug or a mismatched bridge, told as internal.
Result<ParsedReport> parse_module_report(std::string_view json);

}  // namespace driftwood::wasm
