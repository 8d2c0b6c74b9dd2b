// Plan: where every buffer of a graph lives in one arena, for a largest number of rows.
//
// A buffer gets an f32 part, a q8 part (int8 codes, scales, scaled sums, integer sums) or both, by who reads
// it: matmuls with quantised weights read q8, everything else reads f32. Ops whose f32 output nobody reads
// write q8 only (norm, swiglu); attention always writes f32 first. Parts whose lives do not overlap share
// bytes.
//
// Layout: every part starts on a 64-byte boundary. A part's bytes are sized for the largest row count; a run
// with fewer rows uses its front. Cost: planning is O(buffers^2), once per engine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace driftwood::graph {

struct PlanOptions {
  int64_t max_tokens = 0;      // largest T
  int64_t max_logit_rows = 0;  // largest R
  // Is the matrix of this key in a quantised layout (and to be multiplied by int8 activations)?
  std::function<bool(const std::string& key)> reads_q8;
};

// Byte offsets in the arena; -1: the part does not exist.
struct Placement {
  int64_t f32 = -1;
  int64_t q = -1;
  int64_t d = -1;
  int64_t s = -1;
  int64_t isum = -1;

  bool has_f32() const { return f32 >= 0; }
  bool has_q8() const { return q >= 0; }
};

struct Plan {
  std::vector<Placement> placements;  // by buffer; in-place updates repeat their storage's
  int64_t arena_bytes = 0;
  int64_t unshared_bytes = 0;  // what the arena would take without sharing, for figures
};

inline constexpr int64_t kArenaAlign = 64;

// The graph must be valid. internal_error if a buffer is wanted as q8 and its op can't quantise, or its width
// is no multiple of 32.
Result<Plan> make_plan(const Graph& graph, const PlanOptions& options);

}  // namespace driftwood::graph
