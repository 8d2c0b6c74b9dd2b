// Graph: one forward pass as data. Operations over symbolic buffers, in execution order; no pointers, no
// memory.
//
// A buffer has rows (all T tokens of a run, or only the R rows whose logits are wanted) and a width in f32
// values. Whether it lives as f32, as int8 blocks (q8) or both is not said here: the planner decides from the
// packed layout of the weights that read it (plan.h). Weights are named by the keys of format::MatrixRequest.
//
// Buffers are assigned once. An op that works in place (the residual sum of a norm, rope) defines a new
// buffer that `updates` the old one: same memory, and nobody may read the old one afterwards.
//
// Numerics: the order of ops is the arithmetic; the planner and runner never change it.
// Threads: plain data. Ownership: values. Errors: validate() names the op and the buffer.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "tensor/op_args.h"

namespace driftwood::graph {

using BufferId = int32_t;
inline constexpr BufferId kNoBuffer = -1;

enum class Rows : uint8_t {
  kTokens,  // T: every token of the run
  kLogits,  // R: the rows that go through the head
};

struct Buffer {
  std::string name;
  Rows rows = Rows::kTokens;
  int64_t width = 0;
  BufferId updates = kNoBuffer;
};

// Columns [column, column + width) of a buffer.
struct Columns {
  BufferId buffer = kNoBuffer;
  int64_t column = 0;
  int64_t width = 0;
};

struct EmbedOp {
  std::string table;  // matrix [V, width of out]
  BufferId out;
};

// sum = x + residual (updates x) if there is a residual; out = norm(sum) * weight.
struct RmsNormOp {
  BufferId x;
  BufferId residual;  // or kNoBuffer
  BufferId sum;       // kNoBuffer without residual
  std::string weight;
  float epsilon;
  BufferId out;
};

// out[:, column .. column + rows) = x W^T (+ bias), for each part: q, k, v or gate, up side by side in one
// buffer.
struct MatmulPart {
  std::string weight;
  std::string bias;  // empty: none
  int64_t rows = 0;
  int64_t column = 0;
};
struct MatmulOp {
  BufferId x;
  std::vector<MatmulPart> parts;  // 1..4, covering out without gaps
  BufferId out;
};

// Angles of the run's positions. The frequencies come with each row's session (DESIGN 4.3).
struct RopeTableOp {
  int64_t half;
  float scale;
  BufferId cosine;
  BufferId sine;
};

struct RopeOp {
  BufferId x;
  int64_t column;
  int64_t heads;
  int64_t head_dim;
  RopeStyle style;
  BufferId cosine;
  BufferId sine;
  BufferId out;  // updates x
};

struct KvStoreOp {
  int64_t layer;
  Columns k;
  Columns v;
};

struct AttentionOp {
  int64_t layer;
  Columns q;
  int64_t heads;
  float scale;
  int64_t window;  // 0: unlimited
  BufferId out;
};

struct SwigluOp {
  Columns gate;
  Columns up;
  BufferId out;
};

// out[r] = a[row r] + b[row r] for the R wanted rows: the last residual sum, only where it is needed.
struct AddRowsOp {
  BufferId a;
  BufferId b;
  BufferId out;
};

using Op = std::variant<EmbedOp, RmsNormOp, MatmulOp, RopeTableOp, RopeOp, KvStoreOp, AttentionOp, SwigluOp,
                        AddRowsOp>;

// What one group of layers keeps per token.
struct KvShape {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
};

struct Graph {
  std::vector<Buffer> buffers;
  std::vector<Op> ops;
  KvShape kv;
  BufferId logits = kNoBuffer;  // [R, V]
};

const char* op_name(const Op& op);

// Buffers an op reads and defines, in a fixed order. Matmul's x is the only read that may be q8.
struct OpUses {
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
};
OpUses op_uses(const Op& op);

// The buffer whose memory `id` lives in: follows `updates` to its start.
BufferId storage_of(const Graph& graph, BufferId id);

// Checks ids, single assignment, use before definition, in-place rules, shapes and KV order. An error is a
// bug of the architecture's file: internal_error naming op number, kind and buffer.
Status validate(const Graph& graph);

// Text form, one op a line, for tests and for people.
std::string to_string(const Graph& graph);

}  // namespace driftwood::graph
