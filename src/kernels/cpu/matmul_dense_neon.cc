// Dense matmul for NEON, and the choice between dense and quantised.
#include "kernels/cpu/dense_tile_neon.h"
#include "kernels/cpu/matmul_kernels.h"
#include "kernels/cpu/matmul_neon.h"

namespace driftwood::kernels::neon {

void matmul_dense(const MatmulArgs& args, int64_t begin, int64_t end) {
  dense_any_layout<DenseTile>(args, begin, end);
}

void matmul(const MatmulArgs& args, int64_t begin, int64_t end) {
  if (is_quantised(args.weight.layout)) {
    matmul_quantised(args, begin, end);
  } else {
    matmul_dense(args, begin, end);
  }
}

}  // namespace driftwood::kernels::neon
