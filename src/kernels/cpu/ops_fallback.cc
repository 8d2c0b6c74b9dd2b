// The operation tables by way of ref, while the vector operations are not in this tree.
#include "kernels/cpu/matmul_kernels.h"

namespace driftwood::kernels {
namespace avx2 {
const KernelTable& table() {
  static const KernelTable kTable = [] {
    KernelTable t = ref::table();
    t.isa = "avx2";
    t.quantise = quantise;
    t.matmul = matmul;
    t.gemm = gemm;
    return t;
  }();
  return kTable;
}
}  // namespace avx2
namespace avx512 {
const KernelTable& table() {
  static const KernelTable kTable = [] {
    KernelTable t = ref::table();
    t.isa = "avx512";
    t.quantise = quantise;
    t.matmul = matmul;
    t.gemm = gemm;
    return t;
  }();
  return kTable;
}
}  // namespace avx512
}  // namespace driftwood::kernels
