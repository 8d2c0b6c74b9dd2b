// The work behind `driftwood logits`: a token sequence through an engine, every row's logits kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace driftwood::cli {

struct LogitsRequest {
  std::vector<int32_t> ids;
  int64_t greedy = 0;  // tokens to continue with at temperature 0
  int64_t chunk = 0;   // prompt tokens per step, 0: all
  int beside = 0;      // sessions that step from other threads meanwhile
};

struct LogitsResult {
  int64_t vocab_size = 0;
  std::vector<float> logits;    // [T, V]
  std::vector<int64_t> greedy;  // [N]
};

// "1,2,3"; errors name the item.
Result<std::vector<int32_t>> parse_ids(const std::string& text);
// "FILE:TENSOR" of a safetensors file, i64, i32 or u32, rank 1.
Result<std::vector<int32_t>> read_ids(const std::string& file_and_tensor);

Result<LogitsResult> compute_logits(engine::Engine& engine, const LogitsRequest& request);
Status write_logits(const std::string& path, const LogitsResult& result, const std::string& numerics_id);

}  // namespace driftwood::cli
