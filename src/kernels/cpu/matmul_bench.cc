// Matrix kernels against the machine: GMAC/s of a prompt's matmuls on one thread, GB/s of a decode step's on
// one and two threads, each with its share of what the machine can do at most (peaks/machine_peaks.h). The
// peak is that of the processor's best instructions, whichever the kernels use.
//
//   matmul_bench [instruction set] [seconds per figure]     (by default the best that this processor has)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/kernel_table.h"
#include "os/cpu_features.h"
#include "peaks/machine_peaks.h"

namespace driftwood::kernels {
namespace {

using Matmul = void (*)(const MatmulArgs&, int64_t, int64_t);
using Clock = std::chrono::steady_clock;

struct alignas(64) Line {
  uint8_t bytes[64];
};

struct Layout {
  const char* name;
  PackedLayout layout;
  bool has_min;
  int zero_point;
};

constexpr Layout kLayouts[] = {
    {"Q4_1", PackedLayout::kP4H, true, 0},   {"Q4_0", PackedLayout::kP4H, false, 8},
    {"Q8_0", PackedLayout::kP8H, false, 0},  {"f16", PackedLayout::kF16, false, 0},
    {"bf16", PackedLayout::kBF16, false, 0}, {"f32", PackedLayout::kF32, false, 0}};

// Bytes 0x2c everywhere: codes 12 and 2, scales and dense weights small normal numbers in every format.
struct Work {
  Work(const Layout& layout, int64_t n, int64_t k, int64_t tokens)
      : q(tokens * k, 3),
        d(tokens * k / 32, 0.01f),
        s(d),
        isum(tokens * k / 32, 96),
        x(tokens * k, 0.5f),
        out(tokens * n) {
    args.tokens = tokens;
    args.weight = {layout.layout, layout.has_min, layout.zero_point, n, k, nullptr};
    weights.resize(args.weight.size_bytes() / 64 + 1);
    std::memset(weights.data(), 0x2c, weights.size() * 64);
    args.weight.data = reinterpret_cast<const uint8_t*>(weights.data());
    args.q8 = {q.data(), d.data(), s.data(), isum.data()};
    args.x = x.data();
    args.bias = nullptr;
    args.out = out.data();
    args.out_stride = n;
  }
  MatmulArgs args;
  std::vector<Line> weights;
  std::vector<int8_t> q;
  std::vector<float> d, s;
  std::vector<int32_t> isum;
  std::vector<float> x, out;
};

// The best of repeated runs, in seconds: the least disturbed one.
template <class F>
double best_seconds(double budget, F run) {
  double best = 1e9;
  const auto start = Clock::now();
  do {
    const auto from = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - from).count());
  } while (std::chrono::duration<double>(Clock::now() - start).count() < budget);
  return best;
}

template <class F>
void on_threads(int threads, F part) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back([&part, i] { part(i); });
  part(0);
  for (std::thread& t : others) t.join();
}

void bench_gemm(Matmul matmul, double budget) {
  const peaks::Loops& loops = peaks::best_loops();
  const double int8 = peaks::gmac_per_s(loops.int8, 1), f32 = peaks::gmac_per_s(loops.f32, 1);
  std::printf("peak int8 (%s) %.1f, f32 (%s) %.1f GMAC/s\n", loops.int8.instructions, int8,
              loops.f32.instructions, f32);
  constexpr int64_t kShapes[][2] = {{1536, 576}, {576, 1536}, {8192, 2048}};
  for (const Layout& layout : kLayouts) {
    for (const auto& [n, k] : kShapes) {
      for (int64_t tokens : {8, 512}) {
        Work w(layout, n, k, tokens);
        const double s = best_seconds(budget, [&] { matmul(w.args, 0, w.args.weight.groups()); });
        const double rate = static_cast<double>(n * k * tokens) / s * 1e-9;
        std::printf("gemm %-5s N %5ld K %5ld T %3ld  %7.1f GMAC/s  %3.0f %% of the peak\n", layout.name,
                    static_cast<long>(n), static_cast<long>(k), static_cast<long>(tokens), rate,
                    100 * rate / (is_quantised(layout.layout) ? int8 : f32));
      }
    }
  }
}

Status bench_gemv(Matmul matmul, double budget) {
  double peak[3] = {};
  for (int threads : {1, 2}) {
    DW_ASSIGN_OR_RETURN(peak[threads], peaks::read_gb_per_s(peaks::best_loops(), threads));
    std::printf("peak read, %d threads  %6.1f GB/s\n", threads, peak[threads]);
  }
  for (const Layout& layout : kLayouts) {
    const int64_t k = 2048, n = layout.layout <= PackedLayout::kP4F ? 131072 : 65536;
    for (int64_t tokens : {1, 4}) {
      Work w(layout, n, k, tokens);
      for (int threads : {1, 2}) {
        const int64_t groups = w.args.weight.groups();
        const double s = best_seconds(budget, [&] {
          on_threads(threads,
                     [&](int i) { matmul(w.args, groups * i / threads, groups * (i + 1) / threads); });
        });
        const double rate = static_cast<double>(w.args.weight.size_bytes()) / s * 1e-9;
        std::printf("gemv %-5s N %6ld K %ld T %ld  %d threads  %6.1f GB/s  %3.0f %% of the peak\n",
                    layout.name, static_cast<long>(n), static_cast<long>(k), static_cast<long>(tokens),
                    threads, rate, 100 * rate / peak[threads]);
      }
    }
  }
  return Status::ok();
}

// The table of that name, or the best one, if the processor has all it needs.
const TableEntry* choose(std::string_view isa) {
  for (const TableEntry& entry : built_tables()) {
    const bool usable = std::all_of(entry.features.begin(), entry.features.end(),
                                    [](const char* feature) { return os::cpu_has(feature); });
    if (usable && (isa.empty() || isa == entry.isa)) return &entry;
  }
  return nullptr;
}

}  // namespace
}  // namespace driftwood::kernels

int main(int argc, char** argv) {
  using namespace driftwood::kernels;
  const double budget = argc > 2 ? std::atof(argv[2]) : 0.3;
  const TableEntry* entry = choose(argc > 1 ? argv[1] : "");
  if (entry == nullptr) {
    std::fprintf(stderr, "matmul_bench: this build or this processor has no instruction set '%s'\n", argv[1]);
    return 1;
  }
  std::printf("%s\n", entry->isa);
  bench_gemm(entry->table().matmul, budget);
  const driftwood::Status status = bench_gemv(entry->table().matmul, budget);
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "matmul_bench: %s\n", status.message().c_str());
  return 1;
}
