#include "snapshot/container.h"

#include "base/check.h"
#include "format/checked_size.h"
#include "format/safetensors.h"

namespace driftwood::snapshot {

std::optional<uint64_t> tensor_bytes(DType dtype, const std::vector<int64_t>& shape) {
  int64_t elements = 0;
  int64_t bytes = 0;
  if (shape.size() > format::kSafetensorsDimensions || !format::shape_elements(shape, &elements) ||
      !format::multiply(elements, static_cast<int64_t>(dtype_size(dtype)), &bytes) ||
      bytes > (int64_t{1} << 62)) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

std::vector<int64_t> stored_shape(DType dtype, const std::vector<int64_t>& shape) {
  const std::optional<uint64_t> bytes = tensor_bytes(dtype, shape);
  DW_CHECK(bytes.has_value(), "a shape that was not checked");
  const uint64_t padded = padded_bytes(*bytes);
  if (padded == *bytes) return shape;
  if (!shape.empty()) {
    const uint64_t row_bytes = *bytes / static_cast<uint64_t>(shape[0]);
    if (padded % row_bytes == 0) {
      std::vector<int64_t> rows = shape;
      rows[0] = static_cast<int64_t>(padded / row_bytes);
      return rows;
    }
  }
  return {static_cast<int64_t>(padded / dtype_size(dtype))};
}

}  // namespace driftwood::snapshot
