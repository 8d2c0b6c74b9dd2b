// Activation quantising for AVX2; the block itself is quantise_block256.h.
#include "kernels/cpu/matmul_kernels.h"
#include "kernels/cpu/quantise_block256.h"

namespace driftwood::kernels::avx2 {

void quantise(const QuantiseArgs& args, int64_t begin, int64_t end) { quantise_rows(args, begin, end); }

void quantise_row(const float* x, int64_t width, const ActivationsQ8& row) { quantise_blocks(x, width, row); }

}  // namespace driftwood::kernels::avx2
