// The matmul slots by way of ref, while the vector kernels are not in this tree.
#include "kernels/cpu/matmul_kernels.h"
#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::avx2 {
void quantise(const QuantiseArgs& args, int64_t begin, int64_t end) { ref::quantise(args, begin, end); }
void matmul(const MatmulArgs& args, int64_t begin, int64_t end) { ref::matmul(args, begin, end); }
void gemm(const GemmArgs& args, int64_t begin, int64_t end) { ref::gemm(args, begin, end); }
void quantise_row(const float* x, int64_t width, const ActivationsQ8& row) { ref::quantise_row(x, width, row); }
}  // namespace driftwood::kernels::avx2

namespace driftwood::kernels::avx512 {
void quantise(const QuantiseArgs& args, int64_t begin, int64_t end) { ref::quantise(args, begin, end); }
void matmul(const MatmulArgs& args, int64_t begin, int64_t end) { ref::matmul(args, begin, end); }
void gemm(const GemmArgs& args, int64_t begin, int64_t end) { ref::gemm(args, begin, end); }
void quantise_row(const float* x, int64_t width, const ActivationsQ8& row) { ref::quantise_row(x, width, row); }
}  // namespace driftwood::kernels::avx512
