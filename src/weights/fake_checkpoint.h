// A checkpoint in memory with random tensors of any encoding, for tests, and the direct decoding of their
// bytes, written from the formats' definitions and not from the packers.
#pragma once

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/rng.h"
#include "format/checkpoint.h"

namespace driftwood::weights {

class FakeCheckpoint final : public format::Checkpoint {
 public:
  format::FileFormat format() const override { return format::FileFormat::kGguf; }
  const std::string& path() const override { return path_; }
  const std::vector<format::TensorInfo>& tensors() const override { return tensors_; }
  const format::TensorInfo* find(const std::string& name) const override {
    for (const auto& t : tensors_) {
      if (t.name == name) return &t;
    }
    return nullptr;
  }
  int64_t total_tensor_bytes() const override { return 0; }
  const format::MetadataValue* metadata(const std::string&) const override { return nullptr; }
  Result<std::string> side_file(const std::string& name) const override { return not_found(name); }
  std::string fingerprint_hex() const override { return fingerprint; }
  std::string file_stamp() const override { return stamp; }
  void drop_pages(const format::TensorInfo&) const override {}

  // Random contents; scales are random finite f16 (or the given dtype), subnormals and both zeros among them.
  void add(const std::string& name, format::Encoding encoding, std::vector<int64_t> shape,
           DType dtype = DType::kF32, int bits = 0, int group_size = 0) {
    format::TensorInfo t;
    t.name = name;
    t.encoding = encoding;
    t.shape = shape;
    t.dtype = dtype;
    t.bits = bits;
    t.group_size = group_size;
    t.scale_dtype = dtype;
    const int64_t n = t.element_count();
    if (encoding == format::Encoding::kDense) {
      t.bytes = numbers(n, dtype);
    } else if (encoding == format::Encoding::kMlxAffine) {
      t.bytes = raw(n * bits / 8);
      t.scales = numbers(n / group_size, dtype);
      t.biases = numbers(n / group_size, dtype);
    } else {
      t.bytes = blocks(n / 32, encoding);
    }
    tensors_.push_back(t);
  }

  std::string fingerprint = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  std::string stamp = "1";

 private:
  uint64_t draw() { return random_u64(42, 0, position_++, 0); }
  uint16_t half() {
    const auto h = static_cast<uint16_t>(draw());
    return (h & 0x7c00u) == 0x7c00u ? static_cast<uint16_t>(h & 0x83ffu) : h;
  }
  std::span<const uint8_t> raw(int64_t size) {
    auto& v = storage_.emplace_back(static_cast<size_t>(size));
    for (auto& b : v) b = static_cast<uint8_t>(draw());
    return v;
  }
  std::span<const uint8_t> numbers(int64_t count, DType dtype) {
    auto& v = storage_.emplace_back(static_cast<size_t>(count) * dtype_size(dtype));
    for (int64_t i = 0; i < count; ++i) {
      const float x = f16_to_f32(half());
      const uint16_t h = dtype == DType::kBF16 ? f32_to_bf16(x) : f32_to_f16(x);
      if (dtype == DType::kF32) std::memcpy(v.data() + 4 * i, &x, 4);
      if (dtype != DType::kF32) std::memcpy(v.data() + 2 * i, &h, 2);
    }
    return v;
  }
  std::span<const uint8_t> blocks(int64_t count, format::Encoding e) {
    const bool min = e == format::Encoding::kQ4_1 || e == format::Encoding::kQ5_1;
    const bool four = e == format::Encoding::kQ4_0 || e == format::Encoding::kQ4_1;
    const int64_t size = (min ? 4 : 2) + (e == format::Encoding::kQ8_0 ? 32 : four ? 16 : 20);
    raw(count * size);
    auto& v = storage_.back();
    for (int64_t b = 0; b < count; ++b) {
      for (int64_t i = 0; i < (min ? 2 : 1); ++i) {
        const uint16_t h = half();
        std::memcpy(v.data() + b * size + 2 * i, &h, 2);
      }
    }
    return v;
  }
  std::string path_ = "fake.gguf";
  std::vector<format::TensorInfo> tensors_;
  std::deque<std::vector<uint8_t>> storage_;
  uint64_t position_ = 0;
};

inline float number_at(const uint8_t* bytes, DType dtype, int64_t index) {
  float x;
  uint16_t h;
  if (dtype == DType::kF32) {
    std::memcpy(&x, bytes + 4 * index, 4);
    return x;
  }
  std::memcpy(&h, bytes + 2 * index, 2);
  return dtype == DType::kF16 ? f16_to_f32(h) : bf16_to_f32(h);
}

// Element `index` of a tensor decoded from the file's bytes by the embed rule.
inline float decode(const format::TensorInfo& t, int64_t index) {
  using format::Encoding;
  const int64_t block = index / 32;
  const int i = static_cast<int>(index % 32);
  const uint8_t* p = t.bytes.data();
  const auto nibble = [&](const uint8_t* qs) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; };
  const auto fifth = [&](const uint8_t* qh) { return ((qh[i / 8] >> (i % 8)) & 1) << 4; };
  const auto f = [](int x) { return static_cast<float>(x); };
  switch (t.encoding) {
    case Encoding::kDense:
      return number_at(p, t.dtype, index);
    case Encoding::kQ4_0:
      p += block * 18;
      return f(nibble(p + 2) - 8) * number_at(p, DType::kF16, 0);
    case Encoding::kQ4_1:
      p += block * 20;
      return std::fma(f(nibble(p + 4)), number_at(p, DType::kF16, 0), number_at(p, DType::kF16, 1));
    case Encoding::kQ5_0:
      p += block * 22;
      return f((nibble(p + 6) | fifth(p + 2)) - 16) * number_at(p, DType::kF16, 0);
    case Encoding::kQ5_1:
      p += block * 24;
      return std::fma(f(nibble(p + 8) | fifth(p + 4)), number_at(p, DType::kF16, 0),
                      number_at(p, DType::kF16, 1));
    case Encoding::kQ8_0:
      p += block * 34;
      return f(static_cast<int8_t>(p[2 + i])) * number_at(p, DType::kF16, 0);
    case Encoding::kMlxAffine: {
      const int64_t bit = index * t.bits;
      const int code = (p[bit / 8] >> (bit % 8)) & ((1 << t.bits) - 1);
      const int64_t group = index / t.group_size;
      return std::fma(f(code), number_at(t.scales.data(), t.scale_dtype, group),
                      number_at(t.biases.data(), t.scale_dtype, group));
    }
  }
  return 0;
}

}  // namespace driftwood::weights
