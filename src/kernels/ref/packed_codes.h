// Single weights of a PackedMatrix by (row, input): the layout of tensor/packed_matrix.h spelled out.
#pragma once

#include "base/half.h"
#include "tensor/packed_matrix.h"

namespace driftwood::kernels::ref {

DW_ALWAYS_INLINE const uint8_t* block_record(const PackedMatrix& w, int64_t row, int64_t block) {
  const int64_t record_bytes = static_cast<int64_t>(block_record_bytes(w.layout, w.has_min));
  return w.data + (row / kRowGroup * (w.cols / kQuantBlock) + block) * record_bytes;
}

DW_ALWAYS_INLINE bool is_four_bit(PackedLayout layout) {
  return layout == PackedLayout::kP4H || layout == PackedLayout::kP4F;
}

// The stored code of input k, before the zero point.
DW_ALWAYS_INLINE int32_t weight_code(const PackedMatrix& w, int64_t row, int64_t k) {
  const uint8_t* record = block_record(w, row, k / kQuantBlock);
  const int64_t lane = row % kRowGroup;
  const int64_t i = k % kQuantBlock;
  if (is_four_bit(w.layout)) {
    const uint8_t byte = record[i / 8 * 64 + lane * 4 + i % 4];
    return i % 8 < 4 ? byte & 15 : byte >> 4;
  }
  return static_cast<int8_t>(record[i / 4 * 64 + lane * 4 + i % 4]);
}

// index 0: the scales, index 1: the minima.
DW_ALWAYS_INLINE float block_parameter(const PackedMatrix& w, int64_t row, int64_t block, int index) {
  const uint8_t* values = block_record(w, row, block) + (is_four_bit(w.layout) ? 256 : 512);
  const int64_t lane = index * kRowGroup + row % kRowGroup;
  if (w.layout == PackedLayout::kP4H || w.layout == PackedLayout::kP8H) {
    uint16_t half;
    std::memcpy(&half, values + lane * 2, 2);
    return f16_to_f32(half);
  }
  float full;
  std::memcpy(&full, values + lane * 4, 4);
  return full;
}

DW_ALWAYS_INLINE float weight_scale(const PackedMatrix& w, int64_t row, int64_t block) {
  return block_parameter(w, row, block, 0);
}
DW_ALWAYS_INLINE float weight_minimum(const PackedMatrix& w, int64_t row, int64_t block) {
  return block_parameter(w, row, block, 1);
}

DW_ALWAYS_INLINE float dense_weight(const PackedMatrix& w, int64_t row, int64_t k) {
  const int64_t index = (row / kRowGroup * w.cols + k) * kRowGroup + row % kRowGroup;
  if (w.layout == PackedLayout::kF32) {
    float full;
    std::memcpy(&full, w.data + index * 4, 4);
    return full;
  }
  uint16_t half;
  std::memcpy(&half, w.data + index * 2, 2);
  return w.layout == PackedLayout::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
}

// The f32 value of any weight: dense exactly, quantised by the embed rule.
DW_ALWAYS_INLINE float weight_value(const PackedMatrix& w, int64_t row, int64_t k) {
  if (!is_quantised(w.layout)) return dense_weight(w, row, k);
  const float code = static_cast<float>(weight_code(w, row, k) - w.zero_point);
  const float d = weight_scale(w, row, k / kQuantBlock);
  if (!w.has_min) return code * d;
  return __builtin_fmaf(code, d, weight_minimum(w, row, k / kQuantBlock));
}

}  // namespace driftwood::kernels::ref
