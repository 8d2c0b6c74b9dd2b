// Dense matmul for NEON, and the choice between dense and quantised.
#include "kernels/cpu/dense_tile_neon.h"
#include "kernels/cpu/matmul_kernels.h"
#include "kernels/cpu/matmul_neon.h"

namespace driftwood::kernels::neon {

void matmul_dense(const MatmulArgs& args, int64_t begin, int64_t end) {
  switch (args.weight.layout) {
    case PackedLayout::kF32:
      return dense_matmul<DenseTile<PackedLayout::kF32>>(args, begin, end);
    case PackedLayout::kF16:
      return dense_matmul<DenseTile<PackedLayout::kF16>>(args, begin, end);
    case PackedLayout::kBF16:
      return dense_matmul<DenseTile<PackedLayout::kBF16>>(args, begin, end);
    default:
      return;  // quantised layouts go to matmul_quantised
  }
}

void matmul(const MatmulArgs& args, int64_t begin, int64_t end) {
  if (args.weight.layout <= PackedLayout::kP8F) {
    matmul_quantised(args, begin, end);
  } else {
    matmul_dense(args, begin, end);
  }
}

}  // namespace driftwood::kernels::neon
