// The matrix kernels of the CPU tables: activation quantising, packed matmul and the guests' f32 gemm.
//
// Units are those of kernels/kernel_table.h (tokens, row groups of 16 outputs, pieces of kGemmRows rows). The
// numerics are docs/numerics.md: all instruction sets give the bytes of kernels/ref for any T, any split
// into unit ranges and any position of a token in the batch.
//
// No allocation, no threads, no errors; at most 192 KiB of stack. Weights, activations and outputs are
// borrowed. Only the caller's cpu check (os/cpu_features) decides which namespace may be entered.
#pragma once

#include <cstdint>

#include "tensor/op_args.h"

namespace driftwood::kernels::avx2 {  // needs AVX2, FMA, F16C

void quantise(const QuantiseArgs& args, int64_t begin, int64_t end);
// One row of `width` values (a multiple of 32); `row` points at that row's q, d, s and isum.
void quantise_row(const float* x, int64_t width, const ActivationsQ8& row);
void matmul(const MatmulArgs& args, int64_t begin, int64_t end);
void gemm(const GemmArgs& args, int64_t begin, int64_t end);

}  // namespace driftwood::kernels::avx2

namespace driftwood::kernels::avx512 {  // needs AVX-512 F/BW/VL/DQ and VNNI

void quantise(const QuantiseArgs& args, int64_t begin, int64_t end);
void quantise_row(const float* x, int64_t width, const ActivationsQ8& row);
void matmul(const MatmulArgs& args, int64_t begin, int64_t end);
void gemm(const GemmArgs& args, int64_t begin, int64_t end);

}  // namespace driftwood::kernels::avx512

namespace driftwood::kernels::neon {  // needs NEON with dot product

void quantise(const QuantiseArgs& args, int64_t begin, int64_t end);
void quantise_row(const float* x, int64_t width, const ActivationsQ8& row);
void matmul(const MatmulArgs& args, int64_t begin, int64_t end);
void gemm(const GemmArgs& args, int64_t begin, int64_t end);

}  // namespace driftwood::kernels::neon
