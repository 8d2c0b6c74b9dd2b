// unpack_row (pack.h): the packed layout read back by its definition in tensor/packed_matrix.h.
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "weights/pack.h"

namespace driftwood::weights {
namespace {

bool is_four_bit(PackedLayout layout) { return layout == PackedLayout::kP4H || layout == PackedLayout::kP4F; }

int32_t code_at(const uint8_t* record, bool four_bit, int lane, int input) {
  if (!four_bit) {
    const int j = input / 4, b = input % 4;
    return static_cast<int8_t>(record[(j * kRowGroup + lane) * 4 + b]);
  }
  const int j = input / 8, b = input % 4;
  const uint8_t byte = record[(j * kRowGroup + lane) * 4 + b];
  return input % 8 < 4 ? byte & 15 : byte >> 4;
}

float scale_at(const uint8_t* scales, bool half, int index) {
  if (!half) {
    float x;
    std::memcpy(&x, scales + 4 * index, 4);
    return x;
  }
  uint16_t x;
  std::memcpy(&x, scales + 2 * index, 2);
  return f16_to_f32(x);
}

void unpack_quantised(const PackedMatrix& m, const uint8_t* group, int lane, float* out) {
  const bool four_bit = is_four_bit(m.layout);
  const bool half = m.layout == PackedLayout::kP4H || m.layout == PackedLayout::kP8H;
  const size_t record_bytes = block_record_bytes(m.layout, m.has_min);
  for (int64_t block = 0; block < m.blocks(); ++block) {
    const uint8_t* record = group + static_cast<size_t>(block) * record_bytes;
    const uint8_t* scales = record + (four_bit ? 256 : 512);
    const float d = scale_at(scales, half, lane);
    for (int i = 0; i < kQuantBlock; ++i) {
      const auto code = static_cast<float>(code_at(record, four_bit, lane, i) - m.zero_point);
      float* to = out + block * kQuantBlock + i;
      *to = m.has_min ? std::fma(code, d, scale_at(scales, half, kRowGroup + lane)) : code * d;
    }
  }
}

}  // namespace

void unpack_row(const PackedMatrix& m, int64_t row, float* out) {
  DW_CHECK(row >= 0 && row < m.groups() * kRowGroup && m.data != nullptr, "row outside the matrix");
  const uint8_t* group = m.data + static_cast<size_t>(row / kRowGroup) * m.group_bytes();
  const auto lane = static_cast<int>(row % kRowGroup);
  if (is_quantised(m.layout)) return unpack_quantised(m, group, lane, out);
  for (int64_t k = 0; k < m.cols; ++k) {
    const size_t at = static_cast<size_t>(k * kRowGroup + lane) * dense_element_bytes(m.layout);
    if (m.layout == PackedLayout::kF32) {
      std::memcpy(out + k, group + at, 4);
      continue;
    }
    uint16_t half;
    std::memcpy(&half, group + at, 2);
    out[k] = m.layout == PackedLayout::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
  }
}

}  // namespace driftwood::weights
