// KernelTable: the pure functions of one instruction set, as the CPU device calls them.
//
// Every kernel works on units [begin, end) of its op; the units partition the outputs, so any static split
// over threads gives the same bits. No allocation, no threads, no logging, no errors: arguments were checked
// by the device. ref/ is the definition (docs/numerics.md); cpu/ has one table per instruction set, same
// bytes.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/op_args.h"

namespace driftwood::kernels {

struct KernelTable {
  const char* isa;
  void (*embed)(const EmbedArgs&, int64_t begin, int64_t end);           // tokens
  void (*rms_norm)(const RmsNormArgs&, int64_t begin, int64_t end);      // tokens
  void (*quantise)(const QuantiseArgs&, int64_t begin, int64_t end);     // tokens
  void (*matmul)(const MatmulArgs&, int64_t begin, int64_t end);         // row groups (16 outputs each)
  void (*rope_table)(const RopeTableArgs&, int64_t begin, int64_t end);  // tokens
  void (*rope)(const RopeArgs&, int64_t begin, int64_t end);             // tokens
  void (*kv_store)(const KvStoreArgs&, int64_t begin, int64_t end);      // tokens
  // Whole attention for (row tile, KV head) units: unit u = tile * Hkv + kv_head, tiles of kAttentionTile
  // rows that the kernel cuts further where sequences change. Does not quantise (the device calls quantise
  // after).
  void (*attention)(const AttentionArgs&, int64_t begin, int64_t end);
  // The same split over key runs, for few rows with long contexts: unit u = (row * Hkv + kv_head) * runs +
  // run, runs = the largest run count of any row (attention_runs below); run 0 is the first one the row can
  // see. Writes partials (m, l, o[D]) at partials + ((row * H + head) * runs + run) * (D + 2); runs a row
  // does not have are left untouched.
  void (*attention_run)(const AttentionArgs&, float* partials, int64_t runs, int64_t begin, int64_t end);
  // Merges them: unit u = row * H + head.
  void (*attention_merge)(const AttentionArgs&, const float* partials, int64_t runs, int64_t begin,
                          int64_t end);
  void (*swiglu)(const SwigluArgs&, int64_t begin, int64_t end);    // tokens
  void (*add)(const AddArgs&, int64_t begin, int64_t end);          // pieces of kElementPiece values
  void (*softmax)(const SoftmaxArgs&, int64_t begin, int64_t end);  // tokens
  void (*gemm)(const GemmArgs&, int64_t begin, int64_t end);        // pieces of kGemmRows rows of C
};

inline constexpr int64_t kAttentionTile = 8;
inline constexpr int64_t kElementPiece = 4096;
inline constexpr int64_t kGemmRows = 8;
inline constexpr int64_t kMaxHeadDim = 512;  // kernels keep a head's state on the stack

// How many runs of keys a row at `position` reads (docs/numerics.md, attention).
DW_ALWAYS_INLINE int64_t attention_runs(int64_t position, int64_t window) {
  const int64_t first_key = window > 0 && position >= window ? position - window + 1 : 0;
  return position / kKeyRun - first_key / kKeyRun + 1;
}

namespace ref {
const KernelTable& table();
}
namespace avx2 {
const KernelTable& table();  // needs AVX2, FMA, F16C
}
namespace avxvnni {
const KernelTable& table();  // needs AVX2, FMA, F16C and AVX-VNNI
}
namespace avx512 {
const KernelTable& table();  // needs AVX-512 F/BW/VL/DQ and VNNI
}
namespace neon {
const KernelTable& table();  // needs NEON (Advanced SIMD) with dot product
}

// The tables this build holds, best first, each with the CPU features it needs (names of os/cpu_features.h).
// `ref` is always there and always last. CMake picks the file that defines this by processor family.
struct TableEntry {
  const char* isa;
  const KernelTable& (*table)();
  std::span<const char* const> features;
};
std::span<const TableEntry> built_tables();

}  // namespace driftwood::kernels
