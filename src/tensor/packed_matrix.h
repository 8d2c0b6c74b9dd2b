// PackedMatrix: a weight matrix in the one form the kernels read, and ActivationsQ8: activations in int8.
//
// Every file format converts into one of these layouts exactly (src/weights/pack.h); kernels know no other.
// Rows (outputs) are interleaved in groups of 16, so that a vector lane is one output and no kernel ever
// reduces across lanes. W is [rows = N outputs][cols = K inputs]; the packed form is
//     [ceil(N / 16) groups][K / 32 blocks] of the block records below (quantised), or
//     [ceil(N / 16) groups][K][16] elements (dense).
// Rows past N are zero (codes 0, scales +0, minima +0). Data is 64-byte aligned. Groups follow each other
// without gaps, in the order a decode step streams them.
//
// Quantised block records (32 inputs x 16 rows), codes first, then 16 scales d, then 16 minima m if has_min:
//   P4: 256 bytes. Byte [j][lane][b] (j 0..3, lane 0..15, b 0..3): low nibble = input 8j + b,
//       high nibble = input 8j + 4 + b. Code u in 0..15.
//   P8: 512 bytes. Byte [j][lane][b] (j 0..7, lane 0..15, b 0..3) = input 4j + b. Code s in -128..127.
//   Scales and minima: f16 (kP4H, kP8H) or f32 (kP4F, kP8F).
// The weight a code stands for is d * (code - zero_point) + m; zero_point is one integer for the matrix:
//   Q4_0: P4H, zp 8            Q4_1: P4H, zp 0, min        Q8_0: P8H, zp 0
//   Q5_0: P8H, zp 0 (code = q - 16)                        Q5_1: P8H, zp 0, min
//   MLX 4 bit: P4H or P4F, zp 0, min (bias)   MLX 8 bit: P8H or P8F, code = q - 128, zp -128, min (bias)
// (MLX: scales and biases of a group of 32, 64 or 128 inputs are repeated for each block of 32. f16 scales stay
// f16; bf16 and f32 scales become f32.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/half.h"

namespace driftwood {

enum class PackedLayout : uint8_t { kP4H, kP4F, kP8H, kP8F, kF32, kF16, kBF16 };

inline constexpr int kRowGroup = 16;    // rows interleaved
inline constexpr int kQuantBlock = 32;  // inputs that share a scale
inline constexpr int kSegment = 512;    // inputs per accumulation segment (docs/numerics.md)

constexpr bool is_quantised(PackedLayout layout) { return layout <= PackedLayout::kP8F; }

constexpr size_t dense_element_bytes(PackedLayout layout) { return layout == PackedLayout::kF32 ? 4 : 2; }

// Bytes of one block record of a quantised layout.
constexpr size_t block_record_bytes(PackedLayout layout, bool has_min) {
  const bool four_bit = layout == PackedLayout::kP4H || layout == PackedLayout::kP4F;
  const bool half_scale = layout == PackedLayout::kP4H || layout == PackedLayout::kP8H;
  const size_t codes = four_bit ? 256 : 512;
  const size_t scales = kRowGroup * (half_scale ? 2u : 4u);
  return codes + scales * (has_min ? 2u : 1u);
}

struct PackedMatrix {
  PackedLayout layout = PackedLayout::kF32;
  bool has_min = false;
  int32_t zero_point = 0;
  int64_t rows = 0;  // N
  int64_t cols = 0;  // K; a multiple of 32 if quantised
  const uint8_t* data = nullptr;  // borrowed from the WeightSource

  int64_t groups() const { return (rows + kRowGroup - 1) / kRowGroup; }
  int64_t blocks() const { return cols / kQuantBlock; }
  size_t group_bytes() const {
    if (is_quantised(layout)) return static_cast<size_t>(blocks()) * block_record_bytes(layout, has_min);
    return static_cast<size_t>(cols) * kRowGroup * dense_element_bytes(layout);
  }
  size_t size_bytes() const { return static_cast<size_t>(groups()) * group_bytes(); }
};

// Activations quantised per row in blocks of 32 inputs, contiguous rows. Value = d * q.
//   q    [T][K]     int8 in -127..127
//   d    [T][K/32]  scale
//   s    [T][K/32]  d * float(sum of q), one rounding (multiplies the block's minimum)
//   isum [T][K/32]  sum of q (corrects for the zero point)
struct ActivationsQ8 {
  int8_t* q = nullptr;
  float* d = nullptr;
  float* s = nullptr;
  int32_t* isum = nullptr;
};

}  // namespace driftwood
