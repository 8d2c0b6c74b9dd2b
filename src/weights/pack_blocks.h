// Block packers: `count` blocks of 32 inputs of one row into one lane of consecutive block records. One
// function for each quantised encoding (pack.h chooses).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "format/checkpoint.h"

namespace driftwood::weights {

// Where a row's blocks come from, and the lane of the records they go to.
struct LaneJob {
  const uint8_t* codes;   // first block's bytes; MLX: first code word of the block
  const uint8_t* scales;  // MLX: the row's scales
  const uint8_t* biases;  // MLX: the row's biases
  int64_t first_block;    // MLX: index of the first block in its row
  int64_t count;          // blocks
  int blocks_per_group;   // MLX: group_size / 32
  DType scale_dtype;      // MLX
  uint8_t* record;        // first block's record
  size_t record_bytes;
  int lane;
};

using PackBlocks = void (*)(const LaneJob&);
// bits matters to kMlxAffine only.
PackBlocks pack_blocks_of(format::Encoding encoding, int bits);

// Bytes of one block of 32 inputs in the file (codes only for MLX).
size_t file_block_bytes(format::Encoding encoding, int bits);

}  // namespace driftwood::weights
