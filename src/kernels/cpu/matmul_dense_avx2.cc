// Dense matmul for AVX2, and the choice between dense and quantised.
#include "kernels/cpu/dense_tile_avx2.h"
#include "kernels/cpu/matmul_avx2.h"
#include "kernels/cpu/matmul_kernels.h"

namespace driftwood::kernels::avx2 {

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

}  // namespace driftwood::kernels::avx2
