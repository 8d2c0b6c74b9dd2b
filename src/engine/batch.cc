#include "engine/batch.h"

#include <algorithm>

namespace driftwood::engine {
namespace {

struct Room {
  int64_t tokens;
  int64_t logit_rows;
};

Piece cut(size_t index, const Candidate& candidate, const Room& room) {
  Piece piece{index, std::min(candidate.pending, room.tokens), 0};
  if (candidate.all_rows) {
    piece.tokens = std::min(piece.tokens, room.logit_rows);
    piece.logit_rows = piece.tokens;
  } else if (piece.tokens == candidate.pending) {
    // The last pending token needs a logit row; without one it waits for the next run.
    if (room.logit_rows > 0) {
      piece.logit_rows = 1;
    } else {
      --piece.tokens;
    }
  }
  return piece;
}

}  // namespace

void compose_batch(std::span<const Candidate> candidates, int64_t max_tokens, int64_t max_logit_rows,
                   std::vector<Piece>* pieces) {
  pieces->clear();
  Room room{max_tokens, max_logit_rows};
  for (const bool decoding : {true, false}) {
    for (size_t i = 0; i < candidates.size() && room.tokens > 0; ++i) {
      if ((candidates[i].pending == 1) != decoding) continue;
      const Piece piece = cut(i, candidates[i], room);
      if (piece.tokens == 0) continue;
      room.tokens -= piece.tokens;
      room.logit_rows -= piece.logit_rows;
      pieces->push_back(piece);
    }
  }
}

}  // namespace driftwood::engine
