#include "wasm/trap_message.h"

namespace driftwood::wasm {
namespace {

constexpr size_t kMaxFrames = 5;

const char* code_text(wasmtime_trap_code_t code) {
  switch (code) {
    case WASMTIME_TRAP_CODE_STACK_OVERFLOW: return "stack overflow (the guest's stack is limited)";
    case WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS: return "out of bounds memory access";
    case WASMTIME_TRAP_CODE_HEAP_MISALIGNED: return "misaligned atomic access";
    case WASMTIME_TRAP_CODE_TABLE_OUT_OF_BOUNDS: return "out of bounds table access";
    case WASMTIME_TRAP_CODE_INDIRECT_CALL_TO_NULL: return "indirect call to null";
    case WASMTIME_TRAP_CODE_BAD_SIGNATURE: return "indirect call with another signature";
    case WASMTIME_TRAP_CODE_INTEGER_OVERFLOW: return "integer overflow";
    case WASMTIME_TRAP_CODE_INTEGER_DIVISION_BY_ZERO: return "integer division by zero";
    case WASMTIME_TRAP_CODE_BAD_CONVERSION_TO_INTEGER: return "float does not fit the integer";
    case WASMTIME_TRAP_CODE_UNREACHABLE_CODE_REACHED: return "unreachable code reached (abort or panic)";
    case WASMTIME_TRAP_CODE_INTERRUPT: return "interrupted";
    case WASMTIME_TRAP_CODE_NULL_REFERENCE: return "null reference";
    case WASMTIME_TRAP_CODE_ALLOCATION_TOO_LARGE: return "allocation too large";
    default: return nullptr;
  }
}

std::string text_of(const wasmtime_error_t* error, const wasm_trap_t* trap) {
  wasm_name_t text;
  if (trap != nullptr) {
    wasm_trap_message(trap, &text);
  } else {
    wasmtime_error_message(error, &text);
  }
  std::string message(text.data, text.size);
  wasm_name_delete(&text);
  while (!message.empty() && message.back() == '\0') message.pop_back();
  return message;
}

// Wasmtime reports where a load or store went wrong as one line of its message.
std::string fault_place(const std::string& message) {
  static constexpr char kMark[] = "memory fault at wasm address ";
  const size_t begin = message.find(kMark);
  if (begin == std::string::npos) return "";
  const size_t from = begin + sizeof kMark - 1;
  const std::string place = message.substr(from, message.find('\n', from) - from);
  return ": address " + place;
}

}  // namespace

std::string trap_cause(const wasmtime_error_t* error, const wasm_trap_t* trap) {
  wasmtime_trap_code_t code = 0;
  if (trap != nullptr && wasmtime_trap_code(trap, &code)) {
    const std::string message = text_of(nullptr, trap);
    if (const char* text = code_text(code)) return text + fault_place(message);
    return message;
  }
  return text_of(error, trap);
}

std::string trap_frames(const wasmtime_error_t* error, const wasm_trap_t* trap) {
  if (error == nullptr && trap == nullptr) return "";  // it returned, but too late
  wasm_frame_vec_t frames;
  if (trap != nullptr) {
    wasm_trap_trace(trap, &frames);
  } else {
    wasmtime_error_wasm_trace(error, &frames);
  }
  std::string text;
  for (size_t i = 0; i < frames.size && i < kMaxFrames; ++i) {
    text += i == 0 ? " at " : " < ";
    const wasm_name_t* name = wasmtime_frame_func_name(frames.data[i]);
    if (name != nullptr && name->size != 0) {
      text.append(name->data, name->size);
    } else {
      text += "func[" + std::to_string(wasm_frame_func_index(frames.data[i])) + "]";
    }
  }
  if (frames.size > kMaxFrames) text += " < ...";
  wasm_frame_vec_delete(&frames);
  return text;
}

}  // namespace driftwood::wasm
