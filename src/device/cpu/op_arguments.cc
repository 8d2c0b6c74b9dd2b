#include "device/cpu/op_arguments.h"

#include <cstdint>
#include <string>

#include "kernels/kernel_table.h"

namespace driftwood::device {
namespace {

// Collects the first complaint about one op; later checks do nothing.
class Checker {
 public:
  explicit Checker(const char* op) : op_(op) {}

  Checker& that(bool condition, const char* complaint) {
    if (!condition && complaint_ == nullptr) complaint_ = complaint;
    return *this;
  }
  template <typename T>
  Checker& pointer(const T* p, const char* complaint) {
    return that(p != nullptr && reinterpret_cast<uintptr_t>(p) % alignof(T) == 0, complaint);
  }
  Checker& matrix(const PackedMatrix& w) {
    that(w.rows > 0 && w.cols > 0, "weight has no rows or no columns");
    that(w.data != nullptr && reinterpret_cast<uintptr_t>(w.data) % 64 == 0,
         "weight data is null or not 64-byte aligned");
    that(w.layout <= PackedLayout::kBF16, "weight layout is unknown");
    return that(!is_quantised(w.layout) || w.cols % kQuantBlock == 0,
                "a quantised weight's columns are no multiple of 32");
  }
  Checker& q8(const ActivationsQ8& q8, int64_t width) {
    that(width % kQuantBlock == 0, "the width is no multiple of 32, so the row cannot be quantised");
    return pointer(q8.q, "q8.q is null")
        .pointer(q8.d, "q8.d is null or unaligned")
        .pointer(q8.s, "q8.s is null or unaligned")
        .pointer(q8.isum, "q8.isum is null or unaligned");
  }
  Checker& layer(const KvLayer& layer) {
    that(layer.dtype == DType::kF16 || layer.dtype == DType::kF32, "the KV type is neither F16 nor F32");
    that(layer.kv_heads > 0, "kv_heads is not positive");
    that(layer.head_dim > 0 && layer.head_dim <= kernels::kMaxHeadDim, "head_dim is outside 1..512");
    that(layer.pool != nullptr && reinterpret_cast<uintptr_t>(layer.pool) % 64 == 0,
         "the KV pool is null or not 64-byte aligned");
    that(layer.block_bytes > 0 && layer.block_bytes % 64 == 0, "block_bytes is no multiple of 64");
    return that(
        layer.k_offset >= 0 && layer.k_offset % 64 == 0 && layer.v_offset >= 0 && layer.v_offset % 64 == 0,
        "k_offset or v_offset is no multiple of 64");
  }
  Status status() const {
    return complaint_ == nullptr ? Status::ok() : invalid_argument(std::string(op_) + ": " + complaint_);
  }

 private:
  const char* op_;
  const char* complaint_ = nullptr;
};

constexpr const char* kTokens = "the token count is negative";

Status check_part(const MatmulArgs& args) {
  Checker c("matmul");
  c.that(args.tokens >= 0, kTokens).matrix(args.weight).pointer(args.out, "out is null or unaligned");
  c.that(args.out_stride >= args.weight.rows, "out_stride is smaller than the weight's rows");
  if (is_quantised(args.weight.layout) && args.q8.q != nullptr) {
    c.q8(args.q8, args.weight.cols);
  } else {
    c.pointer(args.x, "x is null or unaligned (a dense weight needs it, a quantised one needs it or q8)");
  }
  return c.status();
}

}  // namespace

Status check(const EmbedArgs& args) {
  return Checker("embed")
      .that(args.tokens >= 0, kTokens)
      .matrix(args.table)
      .pointer(args.ids, "ids is null or unaligned")
      .pointer(args.out, "out is null or unaligned")
      .status();
}

Status check(const RmsNormArgs& args) {
  Checker c("rms_norm");
  c.that(args.tokens >= 0, kTokens).that(args.width > 0, "the width is not positive");
  c.pointer(args.x, "x is null or unaligned").pointer(args.weight, "weight is null or unaligned");
  c.that(args.out != nullptr || args.q8.q != nullptr, "neither out nor q8 is set");
  c.that(args.out != args.x || args.residual == nullptr, "out may not be x when there is a residual");
  if (args.q8.q != nullptr) c.q8(args.q8, args.width);
  return c.status();
}

Status check(const QuantiseArgs& args) {
  return Checker("quantise")
      .that(args.tokens >= 0, kTokens)
      .that(args.width > 0, "the width is not positive")
      .pointer(args.x, "x is null or unaligned")
      .q8(args.q8, args.width)
      .status();
}

Status check(const MatmulBatchArgs& args) {
  if (args.count < 1 || args.count > 4) return invalid_argument("matmul: a batch has 1 to 4 parts");
  for (int i = 0; i < args.count; ++i) {
    DW_RETURN_IF_ERROR(check_part(args.parts[i]));
    if (args.parts[i].tokens != args.parts[0].tokens)
      return invalid_argument("matmul: token counts of a batch differ");
  }
  return Status::ok();
}

Status check(const RopeTableArgs& args) {
  return Checker("rope_table")
      .that(args.tokens >= 0, kTokens)
      .that(args.half > 0, "half is not positive")
      .pointer(args.positions, "positions is null or unaligned")
      .pointer(args.inv_freq, "inv_freq is null or unaligned")
      .pointer(args.cosine, "cosine is null or unaligned")
      .pointer(args.sine, "sine is null or unaligned")
      .status();
}

Status check(const RopeArgs& args) {
  return Checker("rope")
      .that(args.tokens >= 0, kTokens)
      .that(args.heads > 0, "heads is not positive")
      .that(args.half > 0 && 2 * args.half <= args.head_dim, "half is outside 1..head_dim / 2")
      .that(args.stride >= args.heads * args.head_dim, "the stride is smaller than a row")
      .pointer(args.x, "x is null or unaligned")
      .pointer(args.cosine, "cosine is null or unaligned")
      .pointer(args.sine, "sine is null or unaligned")
      .status();
}

Status check(const KvStoreArgs& args) {
  const int64_t width = args.layer.kv_heads * args.layer.head_dim;
  return Checker("kv_store")
      .that(args.tokens >= 0, kTokens)
      .layer(args.layer)
      .pointer(args.rows, "rows is null")
      .pointer(args.k, "k is null or unaligned")
      .pointer(args.v, "v is null or unaligned")
      .that(args.k_stride >= width && args.v_stride >= width, "a stride is smaller than a row")
      .status();
}

Status check(const AttentionArgs& args) {
  Checker c("attention");
  c.that(args.tokens >= 0, kTokens).layer(args.layer).pointer(args.rows, "rows is null");
  c.that(args.heads > 0 && args.layer.kv_heads > 0 && args.heads % args.layer.kv_heads == 0,
         "heads is no multiple of kv_heads");
  c.that(args.window >= 0, "the window is negative");
  c.that(args.q_stride >= args.heads * args.layer.head_dim, "q_stride is smaller than a row");
  c.pointer(args.q, "q is null or unaligned").pointer(args.out, "out is null or unaligned");
  if (args.q8.q != nullptr) c.q8(args.q8, args.heads * args.layer.head_dim);
  return c.status();
}

Status check(const SwigluArgs& args) {
  Checker c("swiglu");
  c.that(args.tokens >= 0, kTokens).that(args.width > 0, "the width is not positive");
  c.that(args.stride >= args.width, "the stride is smaller than a row");
  c.pointer(args.gate, "gate is null or unaligned").pointer(args.up, "up is null or unaligned");
  c.that(args.out != nullptr || args.q8.q != nullptr, "neither out nor q8 is set");
  if (args.q8.q != nullptr) c.q8(args.q8, args.width);
  return c.status();
}

Status check(const AddArgs& args) {
  return Checker("add")
      .that(args.count >= 0, "the count is negative")
      .pointer(args.a, "a is null or unaligned")
      .pointer(args.b, "b is null or unaligned")
      .pointer(args.out, "out is null or unaligned")
      .status();
}

Status check(const SoftmaxArgs& args) {
  return Checker("softmax")
      .that(args.tokens >= 0, kTokens)
      .that(args.width > 0, "the width is not positive")
      .pointer(args.x, "x is null or unaligned")
      .pointer(args.out, "out is null or unaligned")
      .status();
}

Status check(const GemmArgs& args) {
  return Checker("gemm")
      .that(args.m >= 0 && args.n >= 0 && args.k >= 0, "a size is negative")
      .that(args.lda >= args.k && args.ldb >= args.n && args.ldc >= args.n, "a stride is smaller than a row")
      .pointer(args.a, "a is null or unaligned")
      .pointer(args.b, "b is null or unaligned")
      .pointer(args.c, "c is null or unaligned")
      .status();
}

}  // namespace driftwood::device
