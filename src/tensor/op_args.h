// Arguments of every tensor operation: plain structs of shapes and device pointers, shared by the kernels,
// the device op tables and the graph. Nothing here owns memory. The arithmetic of each op is defined in
// docs/numerics.md and, executably, in src/kernels/ref.
//
// Conventions: T rows (tokens of any mix of sequences), all matrices row-major and contiguous unless a stride
// is given (in elements). Every op must give row t the same bits whatever T is and whatever the other rows hold.
// Inputs and outputs may not overlap unless an op says so.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "tensor/packed_matrix.h"

namespace driftwood {

// out[t] = row ids[t] of table, dequantised: fma(float(code - zp), d, m), or float(code - zp) * d without
// minima, or the exact dense value. 0 <= ids[t] < table.rows is the caller's duty.
struct EmbedArgs {
  int64_t tokens;
  const int32_t* ids;   // [T]
  PackedMatrix table;   // [V, E]
  float* out;           // [T, E]
};

// Optional second form of a row result: if q8.q is set the row is also quantised (quantise rule).
// x += residual first when residual is set (written back to x). out may be null when only q8 is wanted.
struct RmsNormArgs {
  int64_t tokens;
  int64_t width;            // E
  float* x;                 // [T, E], read; written only when residual is set
  const float* residual;    // [T, E] or null
  const float* weight;      // [E]
  float epsilon;
  float* out;               // [T, E] or null; may be x's buffer only when residual is null
  ActivationsQ8 q8;
};

struct QuantiseArgs {
  int64_t tokens;
  int64_t width;  // K, a multiple of 32
  const float* x;
  ActivationsQ8 q8;
};

// out[t, n] = sum over k of w[n, k] * x[t, k] (+ bias[n]). Quantised layouts read q8; dense layouts read x.
// Quantised weights with x set and q8.q null: the debug path with f32 activations (ref only).
struct MatmulArgs {
  int64_t tokens;
  PackedMatrix weight;     // [N, K]
  const float* x;          // [T, K] or null
  ActivationsQ8 q8;        // of [T, K] or empty
  const float* bias;       // [N] or null; added last, one rounding
  float* out;              // row t at out + t * out_stride, N values (padding rows are never written)
  int64_t out_stride;      // >= N
};

// Several matrices over the same activations in one call (q, k, v or gate, up): one barrier instead of three.
struct MatmulBatchArgs {
  int count;               // 1..4
  MatmulArgs parts[4];     // equal tokens, x, q8
  // Advice: the matmul that comes after this one, whose weights may be fetched ahead. Borrowed; may be null.
  const MatmulBatchArgs* next = nullptr;
};

// Rotation angles: cos/sin of position * inv_freq[i] in f64 (base/math.h), times `scale`, rounded to f32.
struct RopeTableArgs {
  int64_t tokens;
  int64_t half;             // rotated pairs: rotary dims / 2
  const int32_t* positions; // [T]
  const float* inv_freq;    // [half]
  float scale;              // attention factor (yarn, longrope); 1 otherwise
  float* cosine;            // [T, half]
  float* sine;              // [T, half]
};

// In place. Pairs are (i, i + half) [kHalf, Hugging Face order] or (2i, 2i + 1) [kInterleaved, GGUF llama];
// a' = fma(-b, s, a * c); b' = fma(a, s, b * c). Dims past 2 * half are left as they are.
enum class RopeStyle : uint8_t { kHalf, kInterleaved };
struct RopeArgs {
  int64_t tokens;
  int64_t heads;
  int64_t head_dim;
  int64_t half;
  RopeStyle style;
  float* x;             // row t at x + t * stride, head h at + h * head_dim
  int64_t stride;
  const float* cosine;  // [T, half]
  const float* sine;
};

// Where a row's sequence keeps its KV, and the row's place in it.
struct KvRow {
  const int32_t* block_table;  // block ids of the sequence, position / 32 indexes it
  int32_t position;            // of this row, from 0
};

// Geometry of one layer inside a KV block (src/kv). K is [Hkv][D][32 tokens], V is [Hkv][32 tokens][D].
struct KvLayer {
  uint8_t* pool;         // block b starts at pool + b * block_bytes
  int64_t block_bytes;   // multiple of 64 KiB
  int64_t k_offset;      // of this layer's K inside a block, bytes, 64-byte aligned
  int64_t v_offset;
  int64_t kv_heads;      // Hkv
  int64_t head_dim;      // D
  DType dtype;           // kF16 (round to nearest even) or kF32
};

inline constexpr int kKvBlockTokens = 32;
inline constexpr int kKeyRun = 256;  // keys per softmax run (docs/numerics.md)

// Writes row t's K and V at its position. Rows are distinct positions.
struct KvStoreArgs {
  int64_t tokens;
  const KvRow* rows;  // [T]
  KvLayer layer;
  const float* k;     // row t at k + t * k_stride: Hkv * D values
  int64_t k_stride;
  const float* v;
  int64_t v_stride;
};

// out[t, h] = softmax(scale * q[t, h] . K) V over keys max(0, position - window + 1) .. position
// (window 0: from 0), all of them already stored, row t's own key included. Query head h reads KV head
// h / (heads / kv_heads). If q8.q is set the row of all heads is also quantised.
struct AttentionArgs {
  int64_t tokens;
  const KvRow* rows;   // [T]; neighbours of one sequence with ascending positions are served together
  KvLayer layer;
  int64_t heads;       // H
  float scale;
  int64_t window;      // 0 = unlimited
  const float* q;      // row t at q + t * q_stride
  int64_t q_stride;
  float* out;          // [T, H * D]
  ActivationsQ8 q8;
};

// out = silu(gate) * up: ((gate * sigmoid(gate)) * up). If q8.q is set the row is also quantised; out may
// then be null.
struct SwigluArgs {
  int64_t tokens;
  int64_t width;       // F
  const float* gate;   // row t at gate + t * stride
  const float* up;     // row t at up + t * stride
  int64_t stride;
  float* out;          // [T, F] or null
  ActivationsQ8 q8;
};

struct AddArgs {
  int64_t count;
  const float* a;
  const float* b;
  float* out;  // may be a or b
};

// out[t] = softmax(x[t]) over width values: 16 canonical partial sums (docs/numerics.md).
struct SoftmaxArgs {
  int64_t tokens;
  int64_t width;
  const float* x;
  float* out;  // may be x
};

// C = A B in f32 for guests: row-major, strides in elements; K ascending FMA in segments of 512.
struct GemmArgs {
  int64_t m, n, k;
  const float* a;  // [m, k]
  int64_t lda;
  const float* b;  // [k, n]
  int64_t ldb;
  float* c;        // [m, n]
  int64_t ldc;
};

}  // namespace driftwood
