// Inside the NEON objects only: the two halves of matmul, quantised and dense.
#pragma once

#include <cstdint>

#include "tensor/op_args.h"

namespace driftwood::kernels::neon {

void matmul_quantised(const MatmulArgs& args, int64_t begin, int64_t end);
void matmul_dense(const MatmulArgs& args, int64_t begin, int64_t end);

}  // namespace driftwood::kernels::neon
