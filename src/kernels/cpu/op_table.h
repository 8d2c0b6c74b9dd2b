// table() of one instruction set: the operations written over Vec and the matmul family. Include last, once.
#pragma once

#include "kernels/cpu/attention_ops.h"
#include "kernels/cpu/position_ops.h"
#include "kernels/cpu/row_ops.h"

#define DW_QUOTE_INNER(x) #x
#define DW_QUOTE(x) DW_QUOTE_INNER(x)

namespace driftwood::kernels::DW_ISA {

const KernelTable& table() {
  static constexpr KernelTable kTable = {
      .isa = DW_QUOTE(DW_ISA),
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

}  // namespace driftwood::kernels::DW_ISA
