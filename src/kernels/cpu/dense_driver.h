// The loops around a dense f32 tile, shared by the instruction sets: matmul on dense layouts and the guests'
// gemm.
//
// A tile is up to Tile::kTokens rows of x times one or two groups of 16 outputs times one segment of 512
// inputs, one FMA chain per output (docs/numerics.md). f16 and bf16 weights are converted on the way in: the
// conversion runs beside the FMAs on other ports, so a converted copy would gain nothing.
//
// Tile<layout>::run<tokens, groups>(w, w_stride, group_stride, x, x_stride, inputs, acc)
//   w            first element of the segment; input k's 16 weights are at w + k * w_stride (bytes)
//   group_stride bytes from one group of 16 outputs to the next
//   acc          [groups][tokens][16], fully written
//
// Static templates only, as in matmul_driver.h. Stack: 32 KiB for gemm's packed columns, 8 KiB otherwise.
#pragma once

#include <cstdint>

#include "kernels/cpu/matmul_driver.h"
#include "kernels/kernel_table.h"

namespace driftwood::kernels {

inline constexpr int kMaxDenseTokens = 8;
inline constexpr int64_t kDenseChunkValues = 64 * 1024;  // f32 activations of a chunk: 256 KiB
inline constexpr int64_t kGemmChunkRows = 96;            // of A: 192 KiB a segment

template <class Tile, int kGroups>
static DW_ALWAYS_INLINE void run_dense(int tokens, const uint8_t* w, int64_t w_stride, int64_t group_stride,
                                       const float* x, int64_t x_stride, int64_t inputs, float* acc) {
  switch (tokens) {
    case 1:
      return Tile::template run<1, kGroups>(w, w_stride, group_stride, x, x_stride, inputs, acc);
    case 2:
      return Tile::template run<2, kGroups>(w, w_stride, group_stride, x, x_stride, inputs, acc);
    case 3:
      return Tile::template run<3, kGroups>(w, w_stride, group_stride, x, x_stride, inputs, acc);
    default:
      break;
  }
  if constexpr (kGroups == 1) {
    switch (tokens) {
      case 4:
        return Tile::template run<4, 1>(w, w_stride, group_stride, x, x_stride, inputs, acc);
      case 5:
        return Tile::template run<5, 1>(w, w_stride, group_stride, x, x_stride, inputs, acc);
      case 6:
        return Tile::template run<6, 1>(w, w_stride, group_stride, x, x_stride, inputs, acc);
      default:
        break;
    }
    if constexpr (Tile::kTokens > 6) {
      if (tokens == 7) {
        Tile::template run<7, 1>(w, w_stride, group_stride, x, x_stride, inputs, acc);
      } else {
        Tile::template run<8, 1>(w, w_stride, group_stride, x, x_stride, inputs, acc);
      }
    }
  }
}

// One to three tokens: two groups side by side, for more independent FMA chains in a stream of weights.
template <class Tile>
static void dense_direct(const MatmulArgs& args, int64_t begin, int64_t end) {
  const int tokens = static_cast<int>(args.tokens);
  const int64_t k = args.weight.cols;
  constexpr int64_t kStride = kRowGroup * Tile::kElementBytes;
  alignas(64) float part[2 * kMaxDenseTokens * kRowGroup], totals[2 * kMaxDenseTokens * kRowGroup];
  for (int64_t g = begin; g < end; g += 2) {
    const int groups = end - g < 2 ? 1 : 2;
    const uint8_t* w = args.weight.data + g * k * kStride;
    for (int64_t from = 0; from < k; from += kSegment) {
      const int64_t count = k - from < kSegment ? k - from : kSegment;
      float* acc = from == 0 ? totals : part;
      if (groups == 2) {
        run_dense<Tile, 2>(tokens, w + from * kStride, kStride, k * kStride, args.x + from, k, count, acc);
      } else {
        run_dense<Tile, 1>(tokens, w + from * kStride, kStride, 0, args.x + from, k, count, acc);
      }
      if (from != 0) add_part(groups * tokens, part, totals);
    }
    for (int i = 0; i < groups; ++i) write_totals(args, 0, g + i, tokens, totals + i * tokens * kRowGroup);
  }
}

template <class Tile>
static void dense_segment(const MatmulArgs& args, int64_t group, int64_t from, int64_t token, int tokens,
                          float* totals) {
  const int64_t k = args.weight.cols;
  const int64_t count = k - from < kSegment ? k - from : kSegment;
  constexpr int64_t kStride = kRowGroup * Tile::kElementBytes;
  const uint8_t* w = args.weight.data + (group * k + from) * kStride;
  alignas(64) float part[kMaxDenseTokens * kRowGroup];
  int tiles = (tokens + Tile::kTokens - 1) / Tile::kTokens;
  for (int t = 0; t < tokens; --tiles) {
    const int size = (tokens - t + tiles - 1) / tiles;
    float* total = totals + t * kRowGroup;
    run_dense<Tile, 1>(size, w, kStride, 0, args.x + (token + t) * k + from, k, count,
                       from == 0 ? total : part);
    if (from != 0) add_part(size, part, total);
    if (from + count == k) write_totals(args, token + t, group, size, total);
    t += size;
  }
}

template <class Tile>
static void dense_matmul(const MatmulArgs& args, int64_t begin, int64_t end) {
  if (args.tokens <= 0) return;
  if (args.tokens <= 3) return dense_direct<Tile>(args, begin, end);
  const int64_t k = args.weight.cols;
  int64_t chunk = kDenseChunkValues / (k > 0 ? k : 1) / 24 * 24;
  chunk = chunk < 24 ? 24 : chunk > kChunkTokens ? kChunkTokens : chunk;
  alignas(64) float totals[kChunkTokens * kRowGroup];
  for (int64_t t = 0; t < args.tokens; t += chunk) {
    const int tokens = static_cast<int>(args.tokens - t < chunk ? args.tokens - t : chunk);
    for (int64_t g = begin; g < end; ++g) {
      for (int64_t from = 0; from < k; from += kSegment)
        dense_segment<Tile>(args, g, from, t, tokens, totals);
    }
  }
}

template <template <PackedLayout> class TileOf>
static DW_ALWAYS_INLINE void dense_any_layout(const MatmulArgs& args, int64_t begin, int64_t end) {
  switch (args.weight.layout) {
    case PackedLayout::kF32:
      return dense_matmul<TileOf<PackedLayout::kF32>>(args, begin, end);
    case PackedLayout::kF16:
      return dense_matmul<TileOf<PackedLayout::kF16>>(args, begin, end);
    case PackedLayout::kBF16:
      return dense_matmul<TileOf<PackedLayout::kBF16>>(args, begin, end);
    default:
      return;  // quantised layouts go another way
  }
}

// Rows [row, row + rows) of C, columns [column, column + 16), one segment; c is the running total.
template <class Tile>
static void gemm_block(const GemmArgs& args, int64_t row, int64_t rows, int64_t column, int64_t from,
                       const uint8_t* w, int64_t w_stride) {
  const int64_t count = args.k - from < kSegment ? args.k - from : kSegment;
  const int64_t columns = args.n - column < kRowGroup ? args.n - column : kRowGroup;
  alignas(64) float acc[kMaxDenseTokens * kRowGroup];
  int64_t tiles = (rows + Tile::kTokens - 1) / Tile::kTokens;
  for (int64_t r = 0; r < rows; --tiles) {
    const int size = static_cast<int>((rows - r + tiles - 1) / tiles);
    const float* a = args.a + (row + r) * args.lda + from;
    run_dense<Tile, 1>(size, w, w_stride, 0, a, args.lda, count, acc);
    for (int i = 0; i < size; ++i) {
      float* c = args.c + (row + r + i) * args.ldc + column;
      const float* part = acc + i * kRowGroup;
      if (from == 0) {
        for (int64_t j = 0; j < columns; ++j) c[j] = part[j];
      } else {
        for (int64_t j = 0; j < columns; ++j) c[j] = c[j] + part[j];
      }
    }
    r += size;
  }
}

// Copies 16 columns of a segment of B side by side (zeros past n), so that one pass over the rows of A reads
// them from a few pages of stack instead of one page an input.
static DW_ALWAYS_INLINE void pack_columns(const GemmArgs& args, int64_t column, int64_t from, int64_t count,
                                          float* packed) {
  const int64_t columns = args.n - column < kRowGroup ? args.n - column : kRowGroup;
  for (int64_t p = 0; p < count; ++p) {
    const float* b = args.b + (from + p) * args.ldb + column;
    float* to = packed + p * kRowGroup;
    if (columns == kRowGroup) {
      for (int j = 0; j < kRowGroup; ++j) to[j] = b[j];
    } else {
      for (int64_t j = 0; j < kRowGroup; ++j) to[j] = j < columns ? b[j] : 0.0f;
    }
  }
}

template <class Tile>
static void gemm_rows(const GemmArgs& args, int64_t begin, int64_t end) {
  const int64_t first = begin * kGemmRows, last = end * kGemmRows < args.m ? end * kGemmRows : args.m;
  alignas(64) float packed[kSegment * kRowGroup];
  if (args.k == 0) {
    for (int64_t r = first; r < last; ++r) {
      for (int64_t j = 0; j < args.n; ++j) args.c[r * args.ldc + j] = 0.0f;
    }
  }
  for (int64_t row = first; row < last; row += kGemmChunkRows) {
    const int64_t rows = last - row < kGemmChunkRows ? last - row : kGemmChunkRows;
    for (int64_t from = 0; from < args.k; from += kSegment) {
      const int64_t count = args.k - from < kSegment ? args.k - from : kSegment;
      for (int64_t column = 0; column < args.n; column += kRowGroup) {
        const bool in_place = rows <= Tile::kTokens && args.n - column >= kRowGroup;
        if (!in_place) pack_columns(args, column, from, count, packed);
        const float* w = in_place ? args.b + from * args.ldb + column : packed;
        gemm_block<Tile>(args, row, rows, column, from, reinterpret_cast<const uint8_t*>(w),
                         (in_place ? args.ldb : kRowGroup) * static_cast<int64_t>(sizeof(float)));
      }
    }
  }
}

}  // namespace driftwood::kernels
