// Which tokens of which sessions go into one run of the graph.
//
// Sessions with one pending token (decoding) go first, so that a long prompt never makes them wait; prompts
// fill the rest in order of arrival, cut where the run is full. How a prompt is cut changes no result
// (docs/numerics.md). Pure; no allocation once `pieces` has its capacity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace driftwood::engine {

struct Candidate {
  int64_t pending = 0;    // tokens not yet computed, > 0
  bool all_rows = false;  // logits of every row are wanted, not only of the last pending token
};

struct Piece {
  size_t candidate = 0;
  int64_t tokens = 0;
  int64_t logit_rows = 0;  // the piece's last rows: 0, 1 or all
};

// Both limits > 0; at least one piece comes out if there is a candidate.
void compose_batch(std::span<const Candidate> candidates, int64_t max_tokens, int64_t max_logit_rows,
                   std::vector<Piece>* pieces);

}  // namespace driftwood::engine
