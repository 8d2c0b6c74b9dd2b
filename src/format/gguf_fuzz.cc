// libFuzzer entry point: any bytes as a GGUF file. A file that is accepted must have every tensor inside it.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "format/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace driftwood::format;
  const auto contents = parse_gguf({data, size}, "fuzz.gguf");
  if (!contents.is_ok()) return 0;
  for (const TensorInfo& t : contents->tensors) {
    DW_CHECK(t.element_count() > 0, "an accepted tensor has elements");
    DW_CHECK(t.bytes.data() >= data && t.bytes.data() + t.bytes.size() <= data + size,
             "a tensor outside the file");
  }
  return 0;
}
