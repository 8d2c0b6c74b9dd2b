// f32 gemm on guest memory for NEON: the dense tile with B's columns as outputs.
#include "kernels/cpu/dense_tile_neon.h"
#include "kernels/cpu/matmul_kernels.h"

namespace driftwood::kernels::neon {

void gemm(const GemmArgs& args, int64_t begin, int64_t end) {
  gemm_rows<DenseTile<PackedLayout::kF32>>(args, begin, end);
}

}  // namespace driftwood::kernels::neon
