#include "engine/batch.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace driftwood::engine {
namespace {

std::vector<Piece> compose(std::vector<Candidate> candidates, int64_t tokens, int64_t logit_rows) {
  std::vector<Piece> pieces;
  compose_batch(candidates, tokens, logit_rows, &pieces);
  return pieces;
}

TEST(Batch, DecodeRowsGoFirstAndPromptsFillTheRest) {
  const auto pieces = compose({{100, false}, {1, false}, {5, false}, {1, false}}, 16, 8);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].candidate, 1u);
  EXPECT_EQ(pieces[1].candidate, 3u);
  EXPECT_EQ(pieces[2].candidate, 0u);
  EXPECT_EQ(pieces[2].tokens, 14);
  EXPECT_EQ(pieces[2].logit_rows, 0);
}

TEST(Batch, ALogitRowGoesToTheLastTokenOnly) {
  const auto pieces = compose({{5, false}}, 16, 8);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].tokens, 5);
  EXPECT_EQ(pieces[0].logit_rows, 1);
}

TEST(Batch, WithoutLogitRowsLeftAPromptKeepsItsLastToken) {
  const auto pieces = compose({{1, false}, {5, false}, {1, false}}, 16, 1);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].candidate, 1u);
  EXPECT_EQ(pieces[1].tokens, 4);
}

// Whatever arrives: limits hold, nobody is served twice, somebody is served, and repeating it ends.
TEST(Batch, AnyQueueDrainsWithinTheLimits) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    auto dice = [&, n = uint64_t{0}](int64_t below) mutable {
      return static_cast<int64_t>(random_u64(seed, 0, n++, 0) % static_cast<uint64_t>(below));
    };
    std::vector<Candidate> queue(static_cast<size_t>(1 + dice(9)));
    for (Candidate& c : queue) c = {1 + dice(40), dice(4) == 0};
    const int64_t max_tokens = 1 + dice(20);
    const int64_t max_logit_rows = 1 + dice(5);
    int runs = 0;
    while (!queue.empty()) {
      ASSERT_LT(++runs, 1000);
      const auto pieces = compose(queue, max_tokens, max_logit_rows);
      ASSERT_FALSE(pieces.empty());
      int64_t tokens = 0;
      int64_t logit_rows = 0;
      std::vector<bool> served(queue.size(), false);
      for (const Piece& piece : pieces) {
        ASSERT_FALSE(served[piece.candidate]);
        served[piece.candidate] = true;
        Candidate& c = queue[piece.candidate];
        ASSERT_GT(piece.tokens, 0);
        ASSERT_LE(piece.tokens, c.pending);
        const bool finishes = piece.tokens == c.pending;
        ASSERT_EQ(piece.logit_rows, c.all_rows ? piece.tokens : (finishes ? 1 : 0));
        tokens += piece.tokens;
        logit_rows += piece.logit_rows;
        c.pending -= piece.tokens;
      }
      ASSERT_LE(tokens, max_tokens);
      ASSERT_LE(logit_rows, max_logit_rows);
      std::erase_if(queue, [](const Candidate& c) { return c.pending == 0; });
    }
  }
}

}  // namespace
}  // namespace driftwood::engine
