// The AVX-512 table.
#include "kernels/cpu/vec16_avx512.h"

#include "kernels/cpu/op_table.h"
