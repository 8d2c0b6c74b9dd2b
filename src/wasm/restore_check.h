// Whether a frozen state is one of a module: checked before anything is made of it or set.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "wasm/frozen_state.h"
#include "wasm/module_report.h"

namespace driftwood::wasm {

// failed_precondition with every blocker of the module.
Status check_no_blockers(const std::string& module_name, const ModuleReport& report);

// invalid_argument for pieces and sizes that are not whole Wasm pages, for a memory outside of what the
// module declares, and for patches that are not whole OS pages of it, ascending and disjoint;
// resource_exhausted above max_memory_bytes.
Status check_memory(const std::string& module_name, const ParsedReport& module, uint64_t max_memory_bytes,
                    const FrozenMemory& memory);

// invalid_argument naming every difference (up to eight) between the module's mutable globals and the saved
// ones, whose order is free.
Status check_globals(const std::string& module_name, std::span<const GlobalDeclaration> declared,
                     std::span<const GlobalValue> values);

}  // namespace driftwood::wasm
