// Utf8Assembler: however the bytes are cut, the text is the same, it is valid UTF-8, and valid input is
// unchanged.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "text/tokenizer.h"

namespace {

using driftwood::text::Utf8Assembler;

std::string whole(std::string_view bytes) {
  Utf8Assembler assembler;
  std::string text = assembler.push(bytes);
  return text + assembler.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t step = 1 + data[0] % 7;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Utf8Assembler assembler;
  std::string pieces;
  for (size_t i = 0; i < bytes.size(); i += step) pieces += assembler.push(bytes.substr(i, step));
  pieces += assembler.finish();
  const std::string once = whole(bytes);
  DW_CHECK(pieces == once, "the text depends on how the bytes were cut");
  DW_CHECK(whole(once) == once, "the text is not valid UTF-8");
  return 0;
}
