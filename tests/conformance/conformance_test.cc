// Runs the cases over every instruction set of this build and 1 to 4 threads, holds ref's own bytes against
// those of every other processor, and shows that the suite would notice a wrong order of accumulation.
#include <gtest/gtest.h>

#include "base/math.h"
#include "device/cpu/cpu_device.h"
#include "tests/conformance/cases.h"

namespace driftwood::conformance {

Floats random_floats(int64_t count, uint64_t seed, float scale) {
  Floats values(count);
  for (int64_t i = 0; i < count; ++i) {
    const float x = (random_uniform(seed, 0, i, 0) - 0.5f) * 2.0f * scale;
    switch (random_u64(seed, 0, i, 1) % 64) {
      case 0:
        values[i] = 0.0f;
        break;
      case 1:
        values[i] = -0.0f;
        break;
      case 2:
        values[i] = x * 1e-42f;
        break;
      case 3:
        values[i] = x * 30.0f;
        break;
      default:
        values[i] = x;
        break;
    }
  }
  return values;
}

// FNV-1a over what the case has expected so far.
namespace {
constexpr uint64_t kDigestOfNothing = 0xcbf29ce484222325u;
uint64_t case_digest = kDigestOfNothing;
}  // namespace

void digest(const void* bytes, size_t size) {
  const auto* p = static_cast<const uint8_t*>(bytes);
  for (size_t i = 0; i < size; ++i) case_digest = (case_digest ^ p[i]) * 0x100000001b3u;
}

std::string compare(const Quantised& expected, const Quantised& actual, const std::string& what) {
  DW_RETURN_DIFFERENCE(compare(expected.q, actual.q, what + " q8.q"));
  DW_RETURN_DIFFERENCE(compare(expected.d, actual.d, what + " q8.d"));
  DW_RETURN_DIFFERENCE(compare(expected.s, actual.s, what + " q8.s"));
  return compare(expected.isum, actual.isum, what + " q8.isum");
}

std::string compare_row(const Floats& all, int64_t t, const Floats& alone, const std::string& what) {
  Floats row(alone.size());
  std::copy(all.data() + t * alone.size(), all.data() + (t + 1) * alone.size(), row.data());
  return compare(row, alone, what + ", row " + std::to_string(t) + " alone");
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> kCases = {
      {"embed", embed_difference, 0xc4c8e09c601a2fb7},
      {"rms_norm", rms_norm_difference, 0xef9e96f33eafe735},
      {"quantise", quantise_difference, 0x5abf44d7b39535b0},
      {"matmul", matmul_difference, 0x60ba9aa29110186e},
      {"rope_table", rope_table_difference, 0x8beadcbcbd7fab49},
      {"rope", rope_difference, 0x37e519f5e8d1ac7f},
      {"kv_store", kv_store_difference, 0xcd425dee048af214},
      {"attention", attention_difference, 0x3c1555bbef072b09},
      {"attention", attention_invariance, 0x3176025c8b93bf08},
      {"swiglu", swiglu_difference, 0x5dd02158d9f4f7d8},
      {"add", add_difference, 0xb26036cb961f91e7},
      {"softmax", softmax_difference, 0xeb5dd8caf0215c03},
      {"gemm", gemm_difference, 0x6d032be4c96c0b4a},
  };
  return kCases;
}

namespace {

using device::CpuDevice;
using device::CpuOptions;

std::unique_ptr<CpuDevice> reference_device() {
  return std::move(*CpuDevice::create({.threads = 1, .isa = "ref"}));
}

struct Candidate {
  std::string isa;
  int threads;
  size_t case_index;
};

class Conformance : public testing::TestWithParam<Candidate> {};

TEST_P(Conformance, SameBytesAsRef) {
  const Candidate& candidate = GetParam();
  // wake_ns 0: every worker takes part in every op, however small.
  auto device = CpuDevice::create({.threads = candidate.threads, .isa = candidate.isa, .wake_ns = 0});
  if (!device.is_ok() && device.status().code() == Code::kFailedPrecondition) {
    GTEST_SKIP() << device.status().message();
  }
  ASSERT_TRUE(device.is_ok()) << device.status().to_string();
  EXPECT_EQ((*device)->info().isa, candidate.isa);
  EXPECT_EQ((*device)->info().numerics_id, "portable-1");
  const Case& c = all_cases()[candidate.case_index];
  case_digest = kDigestOfNothing;
  ASSERT_EQ(c.difference(*reference_device(), **device), "");
  // A device may agree with ref where ref itself gives other bytes than elsewhere.
  EXPECT_EQ(case_digest, c.digest) << c.op
                                   << ": ref's bytes are not those of portable-1, or the case is new: 0x"
                                   << std::hex << case_digest;
}

std::vector<Candidate> candidates() {
  std::vector<Candidate> list;
  for (size_t i = 0; i < all_cases().size(); ++i) {
    for (const kernels::TableEntry& entry : kernels::built_tables()) {
      const bool ref = std::string_view(entry.isa) == "ref";
      for (int threads = ref ? 3 : 1; threads <= (ref ? 3 : 4); ++threads)
        list.push_back({entry.isa, threads, i});
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conformance, testing::ValuesIn(candidates()), [](const auto& info) {
  return std::string(all_cases()[info.param.case_index].op) + std::to_string(info.param.case_index) + "_" +
         info.param.isa + "_" + std::to_string(info.param.threads);
});

// Kernels that add in another order: mathematically right, and wrong.

void descending_gemm(const GemmArgs& args, int64_t begin, int64_t end) {
  for (int64_t i = begin * kernels::kGemmRows; i < std::min(end * kernels::kGemmRows, args.m); ++i) {
    for (int64_t j = 0; j < args.n; ++j) {
      float total = 0.0f;
      for (int64_t k = args.k - 1; k >= 0; --k) {
        total = __builtin_fmaf(args.a[i * args.lda + k], args.b[k * args.ldb + j], total);
      }
      args.c[i * args.ldc + j] = total;
    }
  }
}

void one_chain_softmax(const SoftmaxArgs& args, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const float* x = args.x + t * args.width;
    float m = x[0];
    for (int64_t i = 1; i < args.width; ++i) m = std::max(m, x[i]);
    float sum = 0.0f;
    for (int64_t i = 0; i < args.width; ++i) sum += exp_f32(x[i] - m);
    for (int64_t i = 0; i < args.width; ++i) args.out[t * args.width + i] = exp_f32(x[i] - m) / sum;
  }
}

// One chain over all of K: segments of 512 left out (dense weights; ref does the others).
void unsegmented_matmul(const MatmulArgs& args, int64_t begin, int64_t end) {
  const PackedMatrix& w = args.weight;
  kernels::ref::table().matmul(args, begin, end);
  if (w.layout != PackedLayout::kF32) return;
  const auto* values = reinterpret_cast<const float*>(w.data);
  for (int64_t t = 0; t < args.tokens; ++t) {
    for (int64_t n = begin * 16; n < std::min(end * 16, w.rows); ++n) {
      float acc = 0.0f;
      for (int64_t k = 0; k < w.cols; ++k) {
        acc = __builtin_fmaf(values[(n / 16 * w.cols + k) * 16 + n % 16], args.x[t * w.cols + k], acc);
      }
      args.out[t * args.out_stride + n] = args.bias == nullptr ? acc : acc + args.bias[n];
    }
  }
}

// The runs of a row merged from the last to the first.
void merged_backwards(const AttentionArgs& args, int64_t begin, int64_t end) {
  const int64_t dim = args.layer.head_dim;
  const int64_t group = args.heads / args.layer.kv_heads;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first_row = unit / args.layer.kv_heads * kernels::kAttentionTile;
    const int64_t kv_head = unit % args.layer.kv_heads;
    for (int64_t row = first_row; row < std::min(first_row + kernels::kAttentionTile, args.tokens); ++row) {
      const int64_t runs = kernels::attention_runs(args.rows[row].position, args.window);
      AttentionArgs one = args;
      one.tokens = 1;
      one.rows = args.rows + row;
      one.q = args.q + row * args.q_stride;
      one.out = args.out + row * args.heads * dim;
      std::vector<float> partials(args.heads * runs * (dim + 2));
      kernels::ref::table().attention_run(one, partials.data(), runs, kv_head * runs, (kv_head + 1) * runs);
      for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        float* parts = partials.data() + head * runs * (dim + 2);
        for (int64_t i = 0; i < runs / 2; ++i) {
          std::swap_ranges(parts + i * (dim + 2), parts + (i + 1) * (dim + 2),
                           parts + (runs - 1 - i) * (dim + 2));
        }
        kernels::ref::table().attention_merge(one, partials.data(), runs, head, head + 1);
      }
    }
  }
}

TEST(Conformance, NoticesAnotherOrder) {
  kernels::KernelTable planted = kernels::ref::table();
  planted.gemm = descending_gemm;
  planted.softmax = one_chain_softmax;
  planted.matmul = unsegmented_matmul;
  planted.attention = merged_backwards;
  auto device = CpuDevice::create({.threads = 1, .table = &planted});
  ASSERT_TRUE(device.is_ok());
  const auto reference = reference_device();
  // Each complaint names the op and the first shape at which the order matters.
  EXPECT_NE(gemm_difference(*reference, **device).find("gemm 1x16x512"), std::string::npos);
  EXPECT_NE(softmax_difference(*reference, **device).find("softmax T="), std::string::npos);
  EXPECT_NE(matmul_difference(*reference, **device).find("matmul F32 N=37 K=544 T=1"), std::string::npos);
  EXPECT_NE(attention_difference(*reference, **device).find("attention H=9 Hkv=3 D=64 f16 length=257"),
            std::string::npos);
  EXPECT_EQ(rms_norm_difference(*reference, **device), "");
}

}  // namespace
}  // namespace driftwood::conformance
