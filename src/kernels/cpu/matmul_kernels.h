// Matrix product, gemm and activation quantisation of each instruction set: the slots of KernelTable that are written
// per ISA (the others are written once, over vec16.h). Same bytes as kernels/ref.
//
// quantise_row quantises one row of `width` values (a multiple of 32) into the pointers of `row`, which are that
// row's own: the operations that can quantise their result call it.
#pragma once

#include "kernels/kernel_table.h"

namespace driftwood::kernels::avx2 {
void quantise(const QuantiseArgs& args, int64_t begin, int64_t end);
void matmul(const MatmulArgs& args, int64_t begin, int64_t end);
void gemm(const GemmArgs& args, int64_t begin, int64_t end);
void quantise_row(const float* x, int64_t width, const ActivationsQ8& row);
}  // namespace driftwood::kernels::avx2

namespace driftwood::kernels::avx512 {
void quantise(const QuantiseArgs& args, int64_t begin, int64_t end);
void matmul(const MatmulArgs& args, int64_t begin, int64_t end);
void gemm(const GemmArgs& args, int64_t begin, int64_t end);
void quantise_row(const float* x, int64_t width, const ActivationsQ8& row);
}  // namespace driftwood::kernels::avx512
