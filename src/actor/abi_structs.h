// The structs that guests pass, as the host reads them: the layouts of sdk/abi/driftwood_abi.h (a test
// compares the two), and what becomes of them.
#pragma once

#include <cstdint>

#include "actor/guest_call.h"
#include "sampler/sampler.h"

namespace driftwood::actor {

struct AbiSampling {
  uint32_t size;
  float temperature;
  int32_t top_k;
  float top_p;
  float min_p;
  float repetition_penalty;
  float presence_penalty;
  float frequency_penalty;
  int32_t penalty_last_n;
  uint32_t bias_count;
  uint64_t seed;
  uint64_t stream;
  uint32_t bias_ids;
  uint32_t bias_values;
};
static_assert(sizeof(AbiSampling) == 64);

struct AbiSessionParams {
  uint32_t size;
  uint32_t reserved;
  int64_t max_tokens;
  AbiSampling sampling;
};
static_assert(sizeof(AbiSessionParams) == 80);

struct AbiGenerateParams {
  uint32_t size;
  uint32_t flags;
  int64_t max_tokens;
  uint32_t run_ahead;
  uint32_t reserved;
};
static_assert(sizeof(AbiGenerateParams) == 24);

struct AbiGemmParams {
  uint64_t m, n, k;
  uint64_t a_offset, lda;
  uint64_t b_offset, ldb;
  uint64_t c_offset, ldc;
};
static_assert(sizeof(AbiGemmParams) == 72);

struct AbiSoftmaxParams {
  uint64_t rows, width;
  uint64_t x_offset, out_offset;
};
static_assert(sizeof(AbiSoftmaxParams) == 32);

inline constexpr uint32_t kMaxBias = 4096;

// Converts and validates. False: the call must return, with fail(*error) unless *error is ok (trapped).
bool read_sampling(GuestCall& call, const AbiSampling& abi, sampler::SamplerParams* params, Status* error);

}  // namespace driftwood::actor
