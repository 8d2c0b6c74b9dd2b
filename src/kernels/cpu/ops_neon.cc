// The NEON table.
#include "kernels/cpu/vec16_neon.h"

#include "kernels/cpu/op_table.h"
