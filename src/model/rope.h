// Rotary frequencies: plain, and the scalings that stretch a model's context.
//
// Everything is computed in double by base/math (no libm), then rounded to f32 once (docs/numerics.md).
// Scalings that depend on length (dynamic) are fixed by the session's context when it opens, and are part of
// its identity (DESIGN 4.3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace driftwood::model {

enum class RopeScaling : uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn };
const char* rope_scaling_name(RopeScaling scaling);
// unimplemented naming the type and those supported. "default" and "none" are kNone.
Result<RopeScaling> rope_scaling_from_name(const std::string& name);

struct RopeParameters {
  RopeScaling scaling = RopeScaling::kNone;
  double theta = 10000.0;
  int64_t dims = 0;  // rotated dims of a head, even
  double factor = 1.0;
  int64_t original_context = 0;  // what the model was trained with before scaling
  double low_freq_factor = 1.0;  // llama3
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;  // yarn
  double beta_slow = 1.0;
  double attention_factor = 0.0;  // yarn; 0: 0.1 ln(factor) + 1, or from the two below if both are set
  double mscale = 0.0;
  double mscale_all_dim = 0.0;
  bool truncate = true;         // yarn: round the ramp's ends to whole dims
  std::vector<float> divisors;  // rope_freqs.weight of a GGUF file: frequency i is divided by [i]; or empty
};

struct RopeFrequencies {
  std::vector<float> inv_freq;  // [dims / 2]
  float scale = 1.0f;           // of cos and sin
};

// invalid_argument naming the parameter and its value.
Status validate(const RopeParameters& parameters);

// `context`: the most tokens the session may hold; matters for kDynamic only. Parameters must be valid.
RopeFrequencies rope_frequencies(const RopeParameters& parameters, int64_t context);

// Does `context` change the result?
bool depends_on_context(const RopeParameters& parameters);

// Every parameter that matters, as text.
std::string identity(const RopeParameters& parameters);

}  // namespace driftwood::model
