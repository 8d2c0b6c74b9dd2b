// Why a guest ended, in words: cause and first frames out of Wasmtime's trap or error.
#pragma once

#include <wasmtime.h>

#include <string>

namespace driftwood::wasm {

// "out of bounds memory access: address 0x20000 of a memory of 0x10000 bytes"; for an error that is no trap,
// its own message. Exactly one of the two is non-null; neither is deleted.
std::string trap_cause(const wasmtime_error_t* error, const wasm_trap_t* trap);

// " at inner < outer < ..." (at most five frames) or "". Functions without a name are "func[7]".
std::string trap_frames(const wasmtime_error_t* error, const wasm_trap_t* trap);

}  // namespace driftwood::wasm
