// The AVX2 table.
#include "kernels/cpu/vec16_avx2.h"

#include "kernels/cpu/op_table.h"
