// The loops around a quantised matmul tile, shared by the instruction sets.
//
// A tile is up to Tile::kTokens tokens times one group of 16 rows times one segment of 512 inputs; its result
// is the segment's accumulators, which this file adds up in order (docs/numerics.md). Two ways through the
// work:
//   direct  few tokens: the weights stream past once, straight from the packed matrix; a segment of them
//           stays in L1 for all tiles of the call;
//   panel   many tokens: a segment of a row group is unpacked once into a panel in L1 (8 or 16 KiB) and used
//           by every token of a chunk. Chunks are sized so that their int8 activations stay in L2.
// Both give the same bits, because a tile computes each (token, row) by itself.
//
// Everything is a static template, so that the objects of two instruction sets never share a symbol.
// Stack: the inputs of a chunk's tiles, the panel, the chunk's totals and one tile's accumulators, 180 KiB.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "tensor/op_args.h"

namespace driftwood::kernels {

inline constexpr int kSegmentBlocks = kSegment / kQuantBlock;
inline constexpr int kMaxTileTokens = 8;
inline constexpr int kDirectTileTokens = 4;
inline constexpr int kChunkTokens = 120;            // largest chunk: its totals take 7.5 KiB
inline constexpr int64_t kChunkBytes = 256 * 1024;  // of int8 activations, half of a small L2

constexpr bool four_bit(PackedLayout layout) {
  return layout == PackedLayout::kP4H || layout == PackedLayout::kP4F;
}
constexpr bool half_scales(PackedLayout layout) {
  return layout == PackedLayout::kP4H || layout == PackedLayout::kP8H;
}

// One segment of one row group, ready for the tile: codes as the tile wants them, scales and minima in f32.
struct alignas(64) WeightPanel {
  uint8_t codes[kSegment * kRowGroup];
  uint8_t magnitudes[kSegment * kRowGroup];  // of signed codes, if the tile wants them
  float d[kSegmentBlocks][kRowGroup];
  float m[kSegmentBlocks][kRowGroup];
};

// The activations of a tile's tokens at the start of a segment. The codes stay where they are; what a block
// has one of is copied side by side, so that a tile needs one pointer for all of it.
struct TileInput {
  const int8_t* q;
  int64_t q_stride;  // K
  int first;         // index of the segment's first block below
  alignas(64) float d[kMaxTileTokens][kSegmentBlocks];
  alignas(64) float s[kMaxTileTokens][kSegmentBlocks];
  // -isum * offset, where offset is what has to be taken off every code; only filled if it is not 0.
  alignas(64) int32_t correction[kMaxTileTokens][kSegmentBlocks];
};

struct TileWeights {
  const uint8_t* records;    // the segment's first block record; null in the panel way
  const WeightPanel* panel;  // null in the direct way
  int blocks;                // of this segment, 1..16
};

// How many blocks the segment that starts at `block` has.
static DW_ALWAYS_INLINE int segment_blocks(int64_t blocks, int64_t block) {
  return static_cast<int>(blocks - block < kSegmentBlocks ? blocks - block : kSegmentBlocks);
}

// Copies whole lines of 16 even for a short last segment, by taking the 16 that end with it: a copy of fixed
// size costs a few instructions, one of any size costs more than the arithmetic of a short segment.
static DW_ALWAYS_INLINE void load_tile_input(const MatmulArgs& args, int64_t token, int64_t block, int tokens,
                                             int blocks, int32_t offset, TileInput& input) {
  const int64_t k = args.weight.cols, row_blocks = k / kQuantBlock;
  input.q = args.q8.q + token * k + block * kQuantBlock;
  input.q_stride = k;
  const bool whole = row_blocks >= kSegmentBlocks;
  input.first = whole ? kSegmentBlocks - blocks : 0;
  for (int t = 0; t < tokens; ++t) {
    const int64_t at = (token + t) * row_blocks + block - input.first;
    if (whole) {
      for (int b = 0; b < kSegmentBlocks; ++b) input.d[t][b] = args.q8.d[at + b];
      for (int b = 0; b < kSegmentBlocks; ++b) input.s[t][b] = args.q8.s[at + b];
      if (offset == 0) continue;
      for (int b = 0; b < kSegmentBlocks; ++b) input.correction[t][b] = -offset * args.q8.isum[at + b];
    } else {
      for (int b = 0; b < blocks; ++b) {
        input.d[t][b] = args.q8.d[at + b];
        input.s[t][b] = args.q8.s[at + b];
        input.correction[t][b] = -offset * args.q8.isum[at + b];
      }
    }
  }
}

// total = total + part, 16 rows of each token.
static DW_ALWAYS_INLINE void add_part(int tokens, const float* part, float* total) {
  for (int i = 0; i < tokens * kRowGroup; ++i) total[i] = total[i] + part[i];
}

// Totals of a tile to the output, with the bias; rows past the matrix are left out.
static DW_ALWAYS_INLINE void write_totals(const MatmulArgs& args, int64_t token, int64_t group, int tokens,
                                          const float* totals) {
  const int64_t row = group * kRowGroup;
  const int64_t rows = args.weight.rows - row < kRowGroup ? args.weight.rows - row : kRowGroup;
  float* out = args.out + token * args.out_stride + row;
  for (int t = 0; t < tokens; ++t, out += args.out_stride, totals += kRowGroup) {
    if (rows == kRowGroup && args.bias == nullptr) {
      std::memcpy(out, totals, kRowGroup * sizeof(float));
    } else if (args.bias == nullptr) {
      for (int64_t i = 0; i < rows; ++i) out[i] = totals[i];
    } else {
      for (int64_t i = 0; i < rows; ++i) out[i] = totals[i] + args.bias[row + i];
    }
  }
}

// Tile: one instruction set's arithmetic for one layout.
//   kTokens                 most tokens of a panel's tile (at most 8)
//   kDirectTokens           most tokens of a call that goes the direct way; its tiles have up to 4
//   kRecordBytes            of a block record
//   kOffset                 what the tile itself adds to a code (AVX-512 makes s8 unsigned)
//   PanelTile               the tile that works on the panel: one for both kinds of scales, which halves
//                           the code
//   unpack(records, blocks, panel)
//   run<tokens, panel>(weights, input, acc)   acc[tokens][16], fully written
// Its last template argument says whether it reads `correction`; if not, kOffset + zero_point is 0.
template <class Tile>
static DW_ALWAYS_INLINE void run_direct(int tokens, const TileWeights& weights, const TileInput& input,
                                        float* acc) {
  switch (tokens) {
    case 1:
      return Tile::template run<1, false>(weights, input, acc);
    case 2:
      return Tile::template run<2, false>(weights, input, acc);
    case 3:
      return Tile::template run<3, false>(weights, input, acc);
    default:
      return Tile::template run<4, false>(weights, input, acc);
  }
}

// Not inlined: the layouts that share a PanelTile share this.
template <class Tile>
[[gnu::noinline]] static void run_panel(int tokens, const TileWeights& weights, const TileInput& input,
                                        float* acc) {
  switch (tokens) {
    case 1:
      return Tile::template run<1, true>(weights, input, acc);
    case 2:
      return Tile::template run<2, true>(weights, input, acc);
    case 3:
      return Tile::template run<3, true>(weights, input, acc);
    case 4:
      return Tile::template run<4, true>(weights, input, acc);
    default:
      break;
  }
  if constexpr (Tile::kTokens > 4) {
    if (tokens == 5) return Tile::template run<5, true>(weights, input, acc);
    if (tokens == 6) return Tile::template run<6, true>(weights, input, acc);
  }
  if constexpr (Tile::kTokens > 6) {
    if (tokens == 7) return Tile::template run<7, true>(weights, input, acc);
    Tile::template run<8, true>(weights, input, acc);
  }
}

// Tokens in tiles of equal size, as far as that goes.
struct Tiling {
  int tokens;
  int tiles;
  int begin(int tile) const { return tokens * tile / tiles; }
  int size(int tile) const { return begin(tile + 1) - begin(tile); }
};

// The inputs of every tile and segment of some tokens, made ready once for all row groups. Where there are
// more of them than fit (very wide matrices) each is made anew whenever it is asked for.
template <class Tile>
class ReadyInputs {
 public:
  ReadyInputs(const MatmulArgs& args, int64_t token, const Tiling& tiling)
      : args_(args), token_(token), tiling_(tiling) {
    const int64_t blocks = args.weight.cols / kQuantBlock;
    const int64_t segments = (blocks + kSegmentBlocks - 1) / kSegmentBlocks;
    ready_ = segments * tiling.tiles <= kCapacity;
    for (int64_t segment = 0; ready_ && segment < segments; ++segment) {
      for (int tile = 0; tile < tiling.tiles; ++tile)
        load(segment, tile, inputs_[segment * tiling.tiles + tile]);
    }
  }
  DW_ALWAYS_INLINE const TileInput& at(int64_t segment, int tile) {
    if (ready_) return inputs_[segment * tiling_.tiles + tile];
    load(segment, tile, inputs_[0]);
    return inputs_[0];
  }

 private:
  static constexpr int64_t kCapacity = 96;

  void load(int64_t segment, int tile, TileInput& input) const {
    const int64_t block = segment * kSegmentBlocks;
    load_tile_input(args_, token_ + tiling_.begin(tile), block, tiling_.size(tile),
                    segment_blocks(args_.weight.cols / kQuantBlock, block),
                    args_.weight.zero_point + Tile::kOffset, input);
  }

  const MatmulArgs& args_;
  int64_t token_;
  Tiling tiling_;
  bool ready_;
  TileInput inputs_[kCapacity];
};

// Each segment of the stream against one tile of tokens after the other. kOneTile spares the loop over tiles,
// which costs a single token 5 % of its instructions.
template <class Tile, bool kOneTile>
static void matmul_direct(const MatmulArgs& args, int64_t begin, int64_t end) {
  constexpr int64_t kRecordBytes = static_cast<int64_t>(Tile::kRecordBytes);
  const int tokens = static_cast<int>(args.tokens);
  const int64_t blocks = args.weight.cols / kQuantBlock;
  const Tiling tiling{tokens, kOneTile ? 1 : (tokens + kDirectTileTokens - 1) / kDirectTileTokens};
  ReadyInputs<Tile> inputs(args, 0, tiling);
  alignas(64) float part[kDirectTileTokens * kRowGroup], totals[Tile::kDirectTokens * kRowGroup];
  const uint8_t* records = args.weight.data + begin * blocks * kRecordBytes;
  for (int64_t g = begin; g < end; ++g) {
    for (int64_t b = 0; b < blocks; b += kSegmentBlocks) {
      const int count = segment_blocks(blocks, b);
      for (int tile = 0; tile < (kOneTile ? 1 : tiling.tiles); ++tile) {
        const int size = kOneTile ? tokens : tiling.size(tile);
        float* const total = totals + (kOneTile ? 0 : tiling.begin(tile)) * kRowGroup;
        run_direct<Tile>(size, {records, nullptr, count}, inputs.at(b / kSegmentBlocks, tile),
                         b == 0 ? total : part);
        if (b != 0) add_part(size, part, total);
      }
      records += count * kRecordBytes;
    }
    write_totals(args, 0, g, tokens, totals);
  }
}

// All tokens of a chunk, which begins at `token`, against the segment at `block` of one row group.
template <class Tile>
static void panel_segment(const MatmulArgs& args, int64_t group, int64_t block, int64_t token,
                          const Tiling& tiling, ReadyInputs<Tile>& inputs, WeightPanel& panel,
                          float* totals) {
  const int64_t blocks = args.weight.cols / kQuantBlock;
  const int count = segment_blocks(blocks, block);
  constexpr int64_t kRecordBytes = static_cast<int64_t>(Tile::kRecordBytes);
  const uint8_t* records = args.weight.data + (group * blocks + block) * kRecordBytes;
  Tile::unpack(records, count, panel);
  // The next segment comes while this one is worked on: a stream of its own pace, which no prefetcher
  // follows. Asked for inside the tile, evenly, it costs every block more registers than it saves time.
  for (int64_t at = 0; at < kSegmentBlocks * kRecordBytes; at += 64)
    __builtin_prefetch(records + count * kRecordBytes + at, 0, 2);
  const TileWeights weights{nullptr, &panel, count};
  alignas(64) float part[kMaxTileTokens * kRowGroup];
  for (int tile = 0; tile < tiling.tiles; ++tile) {
    const int from = tiling.begin(tile), size = tiling.size(tile);
    float* total = totals + from * kRowGroup;
    const TileInput& input = inputs.at(block / kSegmentBlocks, tile);
    run_panel<typename Tile::PanelTile>(size, weights, input, block == 0 ? total : part);
    if (block != 0) add_part(size, part, total);
    if (block + count == blocks) write_totals(args, token + from, group, size, total);
  }
}

template <class Tile>
static void matmul_panels(const MatmulArgs& args, int64_t begin, int64_t end) {
  const int64_t blocks = args.weight.cols / kQuantBlock;
  int64_t chunk = kChunkBytes / args.weight.cols / 24 * 24;
  chunk = chunk < 24 ? 24 : chunk > kChunkTokens ? kChunkTokens : chunk;
  WeightPanel panel;
  alignas(64) float totals[kChunkTokens * kRowGroup];
  for (int64_t t = 0; t < args.tokens; t += chunk) {
    const int tokens = static_cast<int>(args.tokens - t < chunk ? args.tokens - t : chunk);
    const Tiling tiling{tokens, (tokens + Tile::kTokens - 1) / Tile::kTokens};
    ReadyInputs<Tile> inputs(args, t, tiling);
    for (int64_t g = begin; g < end; ++g) {
      for (int64_t b = 0; b < blocks; b += kSegmentBlocks) {
        panel_segment<Tile>(args, g, b, t, tiling, inputs, panel, totals);
      }
    }
  }
}

template <class Tile>
static void matmul_tiles(const MatmulArgs& args, int64_t begin, int64_t end) {
  if (args.tokens <= 0) return;
  if (args.tokens <= kDirectTileTokens) return matmul_direct<Tile, true>(args, begin, end);
  if constexpr (Tile::kDirectTokens > kDirectTileTokens) {
    if (args.tokens <= Tile::kDirectTokens) return matmul_direct<Tile, false>(args, begin, end);
  }
  matmul_panels<Tile>(args, begin, end);
}

// Picks the tile for the matrix: TileOf<layout, has_min, corrects>.
template <template <PackedLayout, bool, bool> class TileOf, PackedLayout kLayout>
static void matmul_layout(const MatmulArgs& args, int64_t begin, int64_t end) {
  const bool corrects = args.weight.zero_point + TileOf<kLayout, false, true>::kOffset != 0;
  if (args.weight.has_min) {
    if (corrects) {
      matmul_tiles<TileOf<kLayout, true, true>>(args, begin, end);
    } else {
      matmul_tiles<TileOf<kLayout, true, false>>(args, begin, end);
    }
  } else if (corrects) {
    matmul_tiles<TileOf<kLayout, false, true>>(args, begin, end);
  } else {
    matmul_tiles<TileOf<kLayout, false, false>>(args, begin, end);
  }
}

template <template <PackedLayout, bool, bool> class TileOf>
static DW_ALWAYS_INLINE void matmul_any_layout(const MatmulArgs& args, int64_t begin, int64_t end) {
  switch (args.weight.layout) {
    case PackedLayout::kP4H:
      return matmul_layout<TileOf, PackedLayout::kP4H>(args, begin, end);
    case PackedLayout::kP4F:
      return matmul_layout<TileOf, PackedLayout::kP4F>(args, begin, end);
    case PackedLayout::kP8H:
      return matmul_layout<TileOf, PackedLayout::kP8H>(args, begin, end);
    case PackedLayout::kP8F:
      return matmul_layout<TileOf, PackedLayout::kP8F>(args, begin, end);
    default:
      return;  // dense layouts go another way
  }
}

}  // namespace driftwood::kernels
