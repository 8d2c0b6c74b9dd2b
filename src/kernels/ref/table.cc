#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::ref {

const KernelTable& table() {
  static constexpr KernelTable kTable = {
      .isa = "ref",
      .embed = embed,
      .rms_norm = rms_norm,
      .quantise = quantise,
      .matmul = matmul,
      .rope_table = rope_table,
      .rope = rope,
      .kv_store = kv_store,
      .attention = attention,
      .attention_run = attention_run,
      .attention_merge = attention_merge,
      .swiglu = swiglu,
      .add = add,
      .softmax = softmax,
      .gemm = gemm,
  };
  return kTable;
}

}  // namespace driftwood::kernels::ref
