// Compares the bytes of the matrix kernels with a scalar reading of docs/numerics.md written here, so that a
// wrong rule in kernels/ref would show too. Instruction sets this machine lacks are skipped by name.
#include "kernels/cpu/matmul_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/half.h"
#include "kernels/kernel_table.h"
#include "os/cpu_features.h"

namespace driftwood::kernels {
namespace {

struct Isa {
  const char* name;
  bool present;
  void (*quantise)(const QuantiseArgs&, int64_t, int64_t);
  void (*quantise_row)(const float*, int64_t, const ActivationsQ8&);
  void (*matmul)(const MatmulArgs&, int64_t, int64_t);
  void (*gemm)(const GemmArgs&, int64_t, int64_t);
};

bool has_all(std::span<const char* const> features) {
  return std::all_of(features.begin(), features.end(), [](const char* name) { return os::cpu_has(name); });
}

// The tables of this build but ref, each with its quantise_row, which no table has.
std::vector<Isa> all_isas() {
  std::vector<Isa> isas;
  for (const TableEntry& entry : built_tables()) {
    if (std::string_view(entry.isa) == "ref") continue;
    const KernelTable& table = entry.table();
    isas.push_back({entry.isa, has_all(entry.features), table.quantise, nullptr, table.matmul, table.gemm});
#if defined(__aarch64__)
    isas.back().quantise_row = neon::quantise_row;
#else
    isas.back().quantise_row =
        std::string_view(entry.isa) == "avx2" ? avx2::quantise_row : avx512::quantise_row;
#endif
  }
  return isas;
}

// A small fixed generator: the same cases on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>(state_ >> 24);
  }
  float uniform() { return static_cast<float>(next() & 0xffffff) * (2.0f / 16777216.0f) - 1.0f; }

 private:
  uint64_t state_;
};

enum class Fill { kRandom, kExtreme, kTiny };

// 64-byte aligned bytes with room behind for nothing: vectors of cache lines.
struct alignas(64) Line {
  uint8_t bytes[64];
};

struct Matrix {
  PackedMatrix view;
  std::vector<Line> storage;
};

void put_scale(uint8_t* at, int index, bool half, float value) {
  if (half) {
    const uint16_t h = f32_to_f16(value);
    std::memcpy(at + 2 * index, &h, 2);
  } else {
    std::memcpy(at + 4 * index, &value, 4);
  }
}

float get_scale(const uint8_t* at, int index, bool half) {
  if (half) {
    uint16_t h;
    std::memcpy(&h, at + 2 * index, 2);
    return f16_to_f32(h);
  }
  float f;
  std::memcpy(&f, at + 4 * index, 4);
  return f;
}

bool four_bit(PackedLayout l) { return l == PackedLayout::kP4H || l == PackedLayout::kP4F; }
bool half_scale(PackedLayout l) { return l == PackedLayout::kP4H || l == PackedLayout::kP8H; }

void fill_record(uint8_t* record, const PackedMatrix& m, int rows, Fill fill, Random& random) {
  const int code_bytes = four_bit(m.layout) ? 256 : 512;
  for (int i = 0; i < code_bytes; ++i) {
    const int row = i / 4 % kRowGroup;
    uint8_t code = static_cast<uint8_t>(random.next());
    if (fill == Fill::kExtreme) code = four_bit(m.layout) ? 0xff : (random.next() & 1 ? 0x80 : 0x7f);
    record[i] = row < rows ? code : 0;
  }
  const float magnitude = fill == Fill::kTiny ? (half_scale(m.layout) ? 3e-7f : 2e-39f) : 0.02f;
  for (int row = 0; row < kRowGroup; ++row) {
    const float d = row < rows ? random.uniform() * magnitude : 0.0f;
    put_scale(record + code_bytes, row, half_scale(m.layout), d);
    if (!m.has_min) continue;
    const float least = row < rows ? random.uniform() * magnitude * 8 : 0.0f;
    put_scale(record + code_bytes, kRowGroup + row, half_scale(m.layout), least);
  }
}

Matrix make_matrix(PackedLayout layout, bool has_min, int zero_point, int64_t n, int64_t k, Fill fill) {
  Matrix matrix;
  matrix.view = {layout, has_min, zero_point, n, k, nullptr};
  matrix.storage.resize((matrix.view.size_bytes() + 63) / 64);
  uint8_t* data = reinterpret_cast<uint8_t*>(matrix.storage.data());
  matrix.view.data = data;
  Random random(static_cast<uint64_t>(n * 131 + k * 7 + static_cast<int>(layout)));
  for (int64_t g = 0; g < matrix.view.groups(); ++g) {
    const int rows = static_cast<int>(std::min<int64_t>(kRowGroup, n - g * kRowGroup));
    uint8_t* group = data + g * matrix.view.group_bytes();
    if (is_quantised(layout)) {
      for (int64_t b = 0; b < matrix.view.blocks(); ++b) {
        fill_record(group + b * block_record_bytes(layout, has_min), matrix.view, rows, fill, random);
      }
      continue;
    }
    for (int64_t i = 0; i < k * kRowGroup; ++i) {
      const float w = i % kRowGroup < rows ? random.uniform() * (fill == Fill::kTiny ? 1e-6f : 1.0f) : 0.0f;
      if (layout == PackedLayout::kF32) std::memcpy(group + 4 * i, &w, 4);
      const uint16_t h = layout == PackedLayout::kF16 ? f32_to_f16(w) : f32_to_bf16(w);
      if (layout != PackedLayout::kF32) std::memcpy(group + 2 * i, &h, 2);
    }
  }
  return matrix;
}

int code_at(const PackedMatrix& m, const uint8_t* record, int row, int input) {
  if (four_bit(m.layout)) {
    const uint8_t byte = record[(input / 8) * 64 + row * 4 + input % 4];
    return input % 8 < 4 ? byte & 15 : byte >> 4;
  }
  return static_cast<int8_t>(record[(input / 4) * 64 + row * 4 + input % 4]);
}

float dense_at(const PackedMatrix& m, int64_t n, int64_t k) {
  const uint8_t* group = m.data + (n / kRowGroup) * m.group_bytes();
  const int64_t i = k * kRowGroup + n % kRowGroup;
  if (m.layout == PackedLayout::kF32) return get_scale(group, static_cast<int>(i), false);
  uint16_t h;
  std::memcpy(&h, group + 2 * i, 2);
  return m.layout == PackedLayout::kF16 ? f16_to_f32(h) : bf16_to_f32(h);
}

// Activations, owned.
struct Q8 {
  std::vector<int8_t> q;
  std::vector<float> d, s;
  std::vector<int32_t> isum;
  Q8(int64_t t, int64_t k) : q(t * k), d(t * k / 32), s(t * k / 32), isum(t * k / 32) {}
  ActivationsQ8 view() { return {q.data(), d.data(), s.data(), isum.data()}; }
  bool operator==(const Q8& o) const {
    return q == o.q && isum == o.isum && std::memcmp(d.data(), o.d.data(), d.size() * 4) == 0 &&
           std::memcmp(s.data(), o.s.data(), s.size() * 4) == 0;
  }
};

void reference_quantise(const float* x, int64_t count, const ActivationsQ8& to) {
  for (int64_t b = 0; b < count / 32; ++b) {
    float amax = -std::numeric_limits<float>::infinity();
    for (int i = 0; i < 32; ++i) amax = std::fabs(x[b * 32 + i]) > amax ? std::fabs(x[b * 32 + i]) : amax;
    to.d[b] = to.s[b] = 0.0f;
    to.isum[b] = 0;
    std::memset(to.q + b * 32, 0, 32);
    if (!(amax > 0) || amax < 1e-30f) continue;
    const float inverse = 127.0f / amax;
    for (int i = 0; i < 32; ++i) {
      const float v = x[b * 32 + i] * inverse;
      const float r = std::nearbyintf(v);
      to.q[b * 32 + i] = static_cast<int8_t>(r >= 127 ? 127 : r > -127 ? r : -127);
      to.isum[b] += to.q[b * 32 + i];
    }
    to.d[b] = amax / 127.0f;
    to.s[b] = to.d[b] * static_cast<float>(to.isum[b]);
  }
}

float reference_output(const MatmulArgs& a, int64_t t, int64_t n) {
  const PackedMatrix& m = a.weight;
  float total = 0;
  for (int64_t from = 0; from < m.cols; from += kSegment) {
    const int64_t to = std::min(m.cols, from + kSegment);
    float acc = 0;
    if (!is_quantised(m.layout)) {
      for (int64_t k = from; k < to; ++k) acc = std::fma(dense_at(m, n, k), a.x[t * m.cols + k], acc);
    }
    for (int64_t b = from / 32; is_quantised(m.layout) && b < to / 32; ++b) {
      const uint8_t* record =
          m.data + (n / kRowGroup) * m.group_bytes() + b * block_record_bytes(m.layout, m.has_min);
      const uint8_t* scales = record + (four_bit(m.layout) ? 256 : 512);
      const int row = static_cast<int>(n % kRowGroup);
      const int64_t at = t * m.blocks() + b;
      int32_t sum = 0;
      for (int i = 0; i < 32; ++i) sum += code_at(m, record, row, i) * a.q8.q[t * m.cols + b * 32 + i];
      sum -= m.zero_point * a.q8.isum[at];
      acc = std::fma(static_cast<float>(sum), get_scale(scales, row, half_scale(m.layout)) * a.q8.d[at], acc);
      if (m.has_min)
        acc = std::fma(get_scale(scales, kRowGroup + row, half_scale(m.layout)), a.q8.s[at], acc);
    }
    total = from == 0 ? acc : total + acc;
  }
  return a.bias != nullptr ? total + a.bias[n] : total;
}

struct Case {
  PackedLayout layout;
  bool has_min;
  int zero_point;
  int64_t n, k, tokens;
  Fill fill = Fill::kRandom;
  bool bias = false;
};

std::string name_of(const Isa& isa, const Case& c) {
  return std::string(isa.name) + " layout " + std::to_string(static_cast<int>(c.layout)) + " min " +
         std::to_string(c.has_min) + " zp " + std::to_string(c.zero_point) + " N " + std::to_string(c.n) +
         " K " + std::to_string(c.k) + " T " + std::to_string(c.tokens) + " fill " +
         std::to_string(static_cast<int>(c.fill));
}

constexpr uint32_t kUntouched = 0x7fc0dead;

// Inputs and the expected output of one case; runs any kernel on any unit ranges and token window.
struct Problem {
  explicit Problem(const Case& c)
      : shape(c),
        matrix(make_matrix(c.layout, c.has_min, c.zero_point, c.n, c.k, c.fill)),
        x(c.tokens * c.k),
        q8(c.tokens, c.k),
        bias(c.n),
        stride(c.n + 5),
        expected(c.tokens * (c.n + 5)) {
    Random random(99);
    for (float& v : x) v = random.uniform() * 3;
    if (c.fill == Fill::kExtreme) {
      for (float& v : x) v = random.next() & 4 ? 2.0f : -2.0f;  // all codes are +-127
      for (int64_t i = 0; i < 32; ++i) x[i] = 2.0f;
    }
    for (float& v : bias) v = random.uniform();
    reference_quantise(x.data(), c.tokens * c.k, q8.view());
    std::fill(expected.begin(), expected.end(), f32_from_bits(kUntouched));
    const MatmulArgs a = args(0, c.tokens, nullptr);
    for (int64_t t = 0; t < c.tokens; ++t) {
      for (int64_t n = 0; n < c.n; ++n) expected[t * stride + n] = reference_output(a, t, n);
    }
  }
  MatmulArgs args(int64_t from, int64_t tokens, float* out) {
    const int64_t blocks = shape.k / 32;
    const ActivationsQ8 q{q8.q.data() + from * shape.k, q8.d.data() + from * blocks,
                          q8.s.data() + from * blocks, q8.isum.data() + from * blocks};
    return {tokens, matrix.view, x.data() + from * shape.k, q, shape.bias ? bias.data() : nullptr,
            out,    stride};
  }
  void expect_bytes(const std::vector<float>& out, int64_t from, const std::string& what) {
    ASSERT_EQ(std::memcmp(out.data(), expected.data() + from * stride, out.size() * 4), 0) << what;
  }
  Case shape;
  Matrix matrix;
  std::vector<float> x;
  Q8 q8;
  std::vector<float> bias;
  int64_t stride;
  std::vector<float> expected;
};

void check(const Isa& isa, const Case& c) {
  Problem p(c);
  const int64_t groups = p.matrix.view.groups();
  const auto run = [&](int64_t from, int64_t tokens, std::vector<int64_t> cuts) {
    std::vector<float> out(tokens * p.stride, f32_from_bits(kUntouched));
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      isa.matmul(p.args(from, tokens, out.data()), cuts[i], cuts[i + 1]);
    p.expect_bytes(out, from,
                   name_of(isa, c) + " from " + std::to_string(from) + " of " + std::to_string(tokens));
  };
  run(0, c.tokens, {0, groups});
  run(0, c.tokens, {0, groups / 3, groups / 3, groups});    // sub-ranges, one of them empty
  run(c.tokens / 2, 1, {0, groups});                        // a token alone
  run(c.tokens / 3, c.tokens - c.tokens / 3, {0, groups});  // the same tokens at other places
}

const int64_t kTokenCounts[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 31, 33, 64, 130};
const PackedLayout kQuantised[] = {PackedLayout::kP4H, PackedLayout::kP4F, PackedLayout::kP8H,
                                   PackedLayout::kP8F};
const PackedLayout kDense[] = {PackedLayout::kF32, PackedLayout::kF16, PackedLayout::kBF16};

class MatmulTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!GetParam().present) GTEST_SKIP() << "this CPU has no " << GetParam().name;
  }
};

TEST_P(MatmulTest, QuantisedTokenCounts) {
  for (PackedLayout layout : kQuantised) {
    for (int64_t t : kTokenCounts) {
      check(GetParam(), {layout, false, four_bit(layout) ? 8 : 0, 37, 576, t});
      check(GetParam(), {layout, true, four_bit(layout) ? 0 : -128, 37, 576, t});
    }
  }
}

TEST_P(MatmulTest, QuantisedDepths) {
  for (PackedLayout layout : kQuantised) {
    for (int64_t k : {32, 64, 480, 512, 544, 1024, 1536, 2080, 4096}) {
      for (int64_t t : {1, 3, 11}) check(GetParam(), {layout, k % 64 == 0, 0, 33, k, t});
    }
  }
}

// Wider than the inputs that a call makes ready at once: panels first, then straight from the records.
TEST_P(MatmulTest, QuantisedVeryWide) {
  for (PackedLayout layout : kQuantised) {
    for (int64_t t : {8, 25}) check(GetParam(), {layout, true, 8, 17, 28704, t});
    for (int64_t t : {1, 3}) check(GetParam(), {layout, true, 8, 17, 49184, t});
  }
}

TEST_P(MatmulTest, QuantisedZeroPointsAndMinima) {
  for (PackedLayout layout : kQuantised) {
    for (int zero_point : {0, 8, -128, 128, 3}) {
      for (bool has_min : {false, true}) {
        for (int64_t t : {1, 4, 6})
          check(GetParam(), {layout, has_min, zero_point, 31, 544, t, Fill::kRandom, t == 4});
      }
    }
  }
}

TEST_P(MatmulTest, QuantisedExtremes) {
  for (PackedLayout layout : kQuantised) {
    for (Fill fill : {Fill::kExtreme, Fill::kTiny}) {
      for (int64_t t : {1, 2, 3, 4, 5, 6, 7, 8, 17})
        check(GetParam(), {layout, t % 2 == 0, 0, 18, 576, t, fill});
    }
  }
}

TEST_P(MatmulTest, QuantisedRows) {
  for (PackedLayout layout : kQuantised) {
    for (int64_t n : {1, 15, 16, 17, 97}) {
      for (int64_t t : {1, 9}) check(GetParam(), {layout, false, 8, n, 96, t, Fill::kRandom, n % 2 == 1});
    }
  }
}

TEST_P(MatmulTest, Dense) {
  for (PackedLayout layout : kDense) {
    for (int64_t t : kTokenCounts)
      check(GetParam(), {layout, false, 0, 53, 576, t, Fill::kRandom, t % 2 == 0});
    for (int64_t k : {1, 2, 63, 512, 513, 1027, 2048}) {
      for (int64_t t : {1, 2, 10})
        check(GetParam(), {layout, false, 0, 33, k, t, t == 2 ? Fill::kTiny : Fill::kRandom});
    }
  }
}

TEST_P(MatmulTest, Gemm) {
  for (int64_t k : {0, 1, 31, 512, 700, 1100}) {
    for (int64_t m : {1, 3, 8, 13, 40, 110}) {
      for (int64_t n : {1, 16, 21, 48}) {
        Random random(static_cast<uint64_t>(k * 100 + m + n));
        const int64_t lda = k + 3, ldb = n + 2, ldc = n + 7;
        std::vector<float> a(m * lda), b(k * ldb + 1), c(m * ldc, f32_from_bits(kUntouched));
        for (float& v : a) v = random.uniform();
        for (float& v : b) v = random.uniform();
        std::vector<float> expected = c;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            float total = 0;
            for (int64_t from = 0; from < k; from += kSegment) {
              float acc = 0;
              for (int64_t p = from; p < std::min(k, from + kSegment); ++p) {
                acc = std::fma(a[i * lda + p], b[p * ldb + j], acc);
              }
              total = from == 0 ? acc : total + acc;
            }
            expected[i * ldc + j] = total;
          }
        }
        const GemmArgs args{m, n, k, a.data(), lda, b.data(), ldb, c.data(), ldc};
        const int64_t units = (m + kGemmRows - 1) / kGemmRows, middle = units / 3;
        GetParam().gemm(args, 0, middle);
        GetParam().gemm(args, middle, units);
        ASSERT_EQ(std::memcmp(c.data(), expected.data(), c.size() * 4), 0)
            << "m " << m << " n " << n << " k " << k;
      }
    }
  }
}

TEST_P(MatmulTest, QuantiseFollowsTheRule) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr int64_t kTokens = 3, kWidth = 32 * 12;
  std::vector<float> x(kTokens * kWidth);
  Random random(5);
  for (float& v : x) v = random.uniform();
  const auto block = [&](int b) { return x.data() + b * 32; };
  std::fill(block(0), block(1), 0.0f);
  for (int i = 0; i < 32; ++i) block(1)[i] = random.uniform() * 9e-31f;  // below the floor
  for (int i = 0; i < 32; ++i) block(2)[i] = -1.5e-30f * static_cast<float>(i % 5);
  block(3)[7] = nan;
  std::fill(block(4), block(5), nan);
  block(5)[31] = -inf;
  block(6)[0] = inf;
  block(6)[1] = nan;
  for (int i = 0; i < 32; ++i) block(7)[i] = static_cast<float>(i - 16) + 0.5f;  // ties at scale 1
  block(7)[3] = 127.0f;
  std::fill(block(8), block(9), -0.0f);
  for (int i = 0; i < 32; ++i) block(9)[i] = (i % 2 == 0 ? 1.0f : -1.0f) * std::numeric_limits<float>::max();
  std::fill(block(10), block(11), -3.0f);
  block(11)[31] = 40.0f;  // the maximum in the last lane
  Q8 expected(kTokens, kWidth), rows(kTokens, kWidth), all(kTokens, kWidth);
  reference_quantise(x.data(), kTokens * kWidth, expected.view());
  const QuantiseArgs args{kTokens, kWidth, x.data(), all.view()};
  GetParam().quantise(args, 0, 1);
  GetParam().quantise(args, 1, kTokens);
  for (int64_t t = 0; t < kTokens; ++t) {
    const int64_t at = t * kWidth / 32;
    GetParam().quantise_row(
        x.data() + t * kWidth, kWidth,
        {rows.q.data() + t * kWidth, rows.d.data() + at, rows.s.data() + at, rows.isum.data() + at});
  }
  EXPECT_TRUE(all == expected);
  EXPECT_TRUE(rows == expected);
  EXPECT_EQ(expected.q[7 * 32 + 16], 0);  // 0.5 goes to the even 0,
  EXPECT_EQ(expected.q[7 * 32 + 17], 2);  // 1.5 to 2
}

INSTANTIATE_TEST_SUITE_P(Cpu, MatmulTest, testing::ValuesIn(all_isas()),
                         [](const testing::TestParamInfo<Isa>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace driftwood::kernels
