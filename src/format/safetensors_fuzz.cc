// libFuzzer entry point: any bytes as a safetensors file, plain and as an MLX model's. A file that is
// accepted must have every tensor inside it and, joined, as many bytes as its shape says.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "format/mlx.h"
#include "format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace driftwood::format;
  const auto tensors = parse_safetensors({data, size}, "fuzz.safetensors");
  if (!tensors.is_ok()) return 0;
  for (const StoredTensor& t : *tensors) {
    DW_CHECK(t.bytes.empty() || (t.bytes.data() >= data && t.bytes.data() + t.bytes.size() <= data + size),
             "a tensor outside the file");
  }
  static const nlohmann::json config = nlohmann::json::parse(
      R"({"quantization":{"group_size":32,"bits":4,"a":{"bits":8,"group_size":64},"b":false}})");
  const auto joined = join_mlx(*tensors, config, "fuzz");
  if (!joined.is_ok()) return 0;
  for (const TensorInfo& t : *joined) {
    if (t.encoding != Encoding::kMlxAffine) continue;
    const auto elements = static_cast<size_t>(t.element_count());
    DW_CHECK(t.bytes.size() * 8 == elements * static_cast<size_t>(t.bits), "codes do not fill the shape");
    DW_CHECK(t.scales.size() * static_cast<size_t>(t.group_size) ==
                 elements * driftwood::dtype_size(t.scale_dtype),
             "scales do not fill the shape");
    DW_CHECK(t.scales.size() == t.biases.size(), "scales and biases differ");
  }
  return 0;
}
