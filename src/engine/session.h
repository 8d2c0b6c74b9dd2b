// Session: the state of one sequence inside the engine. Who may touch what is said in engine_impl.h.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "kv/block_table.h"
#include "sampler/sampler.h"

namespace driftwood::engine {

struct Session {
  Session(SessionId session_id, const SessionOptions& options, int64_t most_tokens)
      : id(session_id), max_tokens(most_tokens), table(most_tokens), sampler(options.sampling) {
    tokens.reserve(static_cast<size_t>(most_tokens));
  }

  const SessionId id;
  const int64_t max_tokens;
  std::vector<int32_t> tokens;
  int64_t computed = 0;       // of tokens, in KV
  int64_t rows_computed = 0;  // rows that ran for this session
  kv::BlockTable table;
  sampler::Sampler sampler;
  std::shared_ptr<const std::vector<float>> inv_freq;

  // [V], of tokens[computed - 1]. A row that forks or frozen sessions have got, too, is never written again.
  std::shared_ptr<const std::vector<float>> logits;
  float* own_logits = nullptr;  // the same row while nobody else has it
  bool has_logits = false;

  bool busy = false;  // a call is using the session

  // While the session waits in step():
  const LogitsSink* sink = nullptr;
  int64_t computed_before = 0;
  Status outcome;
  bool done = false;  // outcome is final
  bool lead = false;  // this caller is the leader now
  std::condition_variable wake;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  int64_t pending() const { return length() - computed; }
};

}  // namespace driftwood::engine
