#include "weights/pack_blocks.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "tensor/packed_matrix.h"

static_assert(std::endian::native == std::endian::little, "codes are moved as little-endian words");

namespace driftwood::weights {
namespace {

using format::Encoding;

constexpr size_t kLaneWord = 4;                     // bytes of one lane in a row of codes
constexpr size_t kWordRow = kRowGroup * kLaneWord;  // one j of a record
constexpr size_t kCodes4 = 4 * kWordRow;            // bytes of codes in a P4 record
constexpr size_t kCodes8 = 8 * kWordRow;

uint32_t load32(const uint8_t* p) {
  uint32_t x;
  std::memcpy(&x, p, 4);
  return x;
}

void store_word(uint8_t* record, int j, int lane, uint32_t word) {
  std::memcpy(record + static_cast<size_t>(j) * kWordRow + static_cast<size_t>(lane) * kLaneWord, &word, 4);
}

// f16 bits of the scale (index 0) or the minimum (index 1) of a lane.
void store_half(uint8_t* record, size_t codes, int index, int lane, const uint8_t* bits) {
  std::memcpy(record + codes + static_cast<size_t>(index * kRowGroup + lane) * 2, bits, 2);
}

void store_float(uint8_t* record, size_t codes, int index, int lane, float value) {
  std::memcpy(record + codes + static_cast<size_t>(index * kRowGroup + lane) * 4, &value, 4);
}

// GGUF 4-bit blocks: byte i holds input i (low) and input i + 16 (high). A packed word j wants inputs
// 8j..8j+3 in its low nibbles and 8j+4..8j+7 in its high ones.
void store_codes_4(uint8_t* record, int lane, const uint8_t* qs) {
  constexpr uint32_t kLow = 0x0f0f0f0fu;
  constexpr uint32_t kHigh = 0xf0f0f0f0u;
  const uint32_t w0 = load32(qs), w1 = load32(qs + 4), w2 = load32(qs + 8), w3 = load32(qs + 12);
  store_word(record, 0, lane, (w0 & kLow) | ((w1 & kLow) << 4));
  store_word(record, 1, lane, (w2 & kLow) | ((w3 & kLow) << 4));
  store_word(record, 2, lane, ((w0 & kHigh) >> 4) | (w1 & kHigh));
  store_word(record, 3, lane, ((w2 & kHigh) >> 4) | (w3 & kHigh));
}

void pack_q4_0(const LaneJob& job) {
  const uint8_t* in = job.codes;
  uint8_t* out = job.record;
  for (int64_t b = 0; b < job.count; ++b, in += 18, out += job.record_bytes) {
    store_codes_4(out, job.lane, in + 2);
    store_half(out, kCodes4, 0, job.lane, in);
  }
}

void pack_q4_1(const LaneJob& job) {
  const uint8_t* in = job.codes;
  uint8_t* out = job.record;
  for (int64_t b = 0; b < job.count; ++b, in += 20, out += job.record_bytes) {
    store_codes_4(out, job.lane, in + 4);
    store_half(out, kCodes4, 0, job.lane, in);
    store_half(out, kCodes4, 1, job.lane, in + 2);
  }
}

// Bits 0..3 of x to bit 4 of each byte.
uint32_t fifth_bits(uint32_t x) {
  return ((x & 1u) << 4) | ((x & 2u) << 11) | ((x & 4u) << 18) | ((x & 8u) << 25);
}

// GGUF 5-bit blocks: nibbles as above, bit i of qh is the fifth bit of input i. Codes 0..31.
void load_codes_5(const uint8_t* qh, const uint8_t* qs, uint32_t words[8]) {
  const uint32_t high = load32(qh);
  for (int i = 0; i < 4; ++i) {
    const uint32_t w = load32(qs + 4 * i);
    words[i] = (w & 0x0f0f0f0fu) | fifth_bits(high >> (4 * i));
    words[i + 4] = ((w >> 4) & 0x0f0f0f0fu) | fifth_bits(high >> (16 + 4 * i));
  }
}

// Bytes 0..31 less 16, each byte alone: with bit 7 set no borrow crosses, then bit 7 is put right.
uint32_t less_16(uint32_t x) { return ((x | 0x80808080u) - 0x10101010u) ^ 0x80808080u; }

void pack_q5_0(const LaneJob& job) {
  const uint8_t* in = job.codes;
  uint8_t* out = job.record;
  for (int64_t b = 0; b < job.count; ++b, in += 22, out += job.record_bytes) {
    uint32_t words[8];
    load_codes_5(in + 2, in + 6, words);
    for (int j = 0; j < 8; ++j) store_word(out, j, job.lane, less_16(words[j]));
    store_half(out, kCodes8, 0, job.lane, in);
  }
}

void pack_q5_1(const LaneJob& job) {
  const uint8_t* in = job.codes;
  uint8_t* out = job.record;
  for (int64_t b = 0; b < job.count; ++b, in += 24, out += job.record_bytes) {
    uint32_t words[8];
    load_codes_5(in + 4, in + 8, words);
    for (int j = 0; j < 8; ++j) store_word(out, j, job.lane, words[j]);
    store_half(out, kCodes8, 0, job.lane, in);
    store_half(out, kCodes8, 1, job.lane, in + 2);
  }
}

void pack_q8_0(const LaneJob& job) {
  const uint8_t* in = job.codes;
  uint8_t* out = job.record;
  for (int64_t b = 0; b < job.count; ++b, in += 34, out += job.record_bytes) {
    for (int j = 0; j < 8; ++j) store_word(out, j, job.lane, load32(in + 2 + 4 * j));
    store_half(out, kCodes8, 0, job.lane, in);
  }
}

// The group's scale and bias repeated for this block.
void store_mlx_scales(const LaneJob& job, int64_t block, uint8_t* record, size_t codes) {
  const int64_t group = (job.first_block + block) / job.blocks_per_group;
  if (job.scale_dtype == DType::kF16) {
    store_half(record, codes, 0, job.lane, job.scales + group * 2);
    store_half(record, codes, 1, job.lane, job.biases + group * 2);
    return;
  }
  if (job.scale_dtype == DType::kF32) {
    std::memcpy(record + codes + static_cast<size_t>(job.lane) * 4, job.scales + group * 4, 4);
    std::memcpy(record + codes + static_cast<size_t>(kRowGroup + job.lane) * 4, job.biases + group * 4, 4);
    return;
  }
  uint16_t scale = 0, bias = 0;
  std::memcpy(&scale, job.scales + group * 2, 2);
  std::memcpy(&bias, job.biases + group * 2, 2);
  store_float(record, codes, 0, job.lane, bf16_to_f32(scale));
  store_float(record, codes, 1, job.lane, bf16_to_f32(bias));
}

// Four nibbles to the low halves of four bytes.
uint32_t spread_nibbles(uint32_t x) {
  x = (x | (x << 8)) & 0x00ff00ffu;
  return (x | (x << 4)) & 0x0f0f0f0fu;
}

// A file word holds inputs 8j..8j+7 in ascending nibbles.
void pack_mlx_4(const LaneJob& job) {
  const uint8_t* in = job.codes;
  uint8_t* out = job.record;
  for (int64_t b = 0; b < job.count; ++b, in += 16, out += job.record_bytes) {
    for (int j = 0; j < 4; ++j) {
      const uint32_t w = load32(in + 4 * j);
      store_word(out, j, job.lane, spread_nibbles(w & 0xffffu) | (spread_nibbles(w >> 16) << 4));
    }
    store_mlx_scales(job, b, out, kCodes4);
  }
}

// Unsigned bytes become signed by taking 128 off, which flips bit 7; the zero point -128 gives it back.
void pack_mlx_8(const LaneJob& job) {
  const uint8_t* in = job.codes;
  uint8_t* out = job.record;
  for (int64_t b = 0; b < job.count; ++b, in += 32, out += job.record_bytes) {
    for (int j = 0; j < 8; ++j) store_word(out, j, job.lane, load32(in + 4 * j) ^ 0x80808080u);
    store_mlx_scales(job, b, out, kCodes8);
  }
}

}  // namespace

PackBlocks pack_blocks_of(Encoding encoding, int bits) {
  switch (encoding) {
    case Encoding::kQ4_0:
      return &pack_q4_0;
    case Encoding::kQ4_1:
      return &pack_q4_1;
    case Encoding::kQ5_0:
      return &pack_q5_0;
    case Encoding::kQ5_1:
      return &pack_q5_1;
    case Encoding::kQ8_0:
      return &pack_q8_0;
    case Encoding::kMlxAffine:
      return bits == 4 ? &pack_mlx_4 : &pack_mlx_8;
    case Encoding::kDense:
      break;
  }
  DW_CHECK(false, "dense tensors have no blocks");
}

size_t file_block_bytes(Encoding encoding, int bits) {
  switch (encoding) {
    case Encoding::kQ4_0:
      return 18;
    case Encoding::kQ4_1:
      return 20;
    case Encoding::kQ5_0:
      return 22;
    case Encoding::kQ5_1:
      return 24;
    case Encoding::kQ8_0:
      return 34;
    case Encoding::kMlxAffine:
      return static_cast<size_t>(bits) * 4;
    case Encoding::kDense:
      break;
  }
  DW_CHECK(false, "dense tensors have no blocks");
}

}  // namespace driftwood::weights
