#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/math.h"

namespace driftwood::model {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// theta^(-2i / dims) for i in 0..dims/2.
std::vector<double> plain(double theta, int64_t dims) {
  std::vector<double> inv_freq(static_cast<size_t>(dims / 2));
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(dims);
    inv_freq[i] = 1.0 / pow_f64(theta, exponent);
  }
  return inv_freq;
}

// Long waves are stretched by the factor, short ones kept, those between are blended.
void scale_llama3(const RopeParameters& p, std::vector<double>* inv_freq) {
  const auto original = static_cast<double>(p.original_context);
  const double longest_kept = original / p.high_freq_factor;
  const double shortest_stretched = original / p.low_freq_factor;
  for (double& f : *inv_freq) {
    const double wavelength = kTwoPi / f;
    if (wavelength < longest_kept) continue;
    if (wavelength > shortest_stretched) {
      f /= p.factor;
      continue;
    }
    const double smooth =
        (original / wavelength - p.low_freq_factor) / (p.high_freq_factor - p.low_freq_factor);
    f = (1.0 - smooth) * f / p.factor + smooth * f;
  }
}

// The dim whose wave turns `rotations` times within the original context.
double yarn_dim(const RopeParameters& p, double rotations) {
  const double turns = static_cast<double>(p.original_context) / (rotations * kTwoPi);
  return static_cast<double>(p.dims) * log_f64(turns) / (2.0 * log_f64(p.theta));
}

void scale_yarn(const RopeParameters& p, std::vector<double>* inv_freq) {
  double low = yarn_dim(p, p.beta_fast);
  double high = yarn_dim(p, p.beta_slow);
  if (p.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(p.dims - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < inv_freq->size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double f = (*inv_freq)[i];
    (*inv_freq)[i] = f / p.factor * ramp + f * (1.0 - ramp);
  }
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * log_f64(factor) + 1.0;
}

double yarn_scale(const RopeParameters& p) {
  if (p.attention_factor > 0.0) return p.attention_factor;
  if (p.mscale > 0.0 && p.mscale_all_dim > 0.0) {
    return yarn_magnitude(p.factor, p.mscale) / yarn_magnitude(p.factor, p.mscale_all_dim);
  }
  return yarn_magnitude(p.factor, 1.0);
}

// Beyond the original context the base grows, so that the longest waves still fit.
double dynamic_theta(const RopeParameters& p, int64_t context) {
  const auto original = static_cast<double>(p.original_context);
  const double length = std::max(static_cast<double>(context), original);
  const double growth = p.factor * length / original - (p.factor - 1.0);
  const auto dims = static_cast<double>(p.dims);
  return p.theta * pow_f64(growth, dims / (dims - 2.0));
}

Status out_of_bounds(const char* name, double value) {
  char text[128];
  std::snprintf(text, sizeof text, "rope parameter %s has the value %g, which is out of range", name, value);
  return invalid_argument(text);
}

}  // namespace

const char* rope_scaling_name(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::kNone:
      return "default";
    case RopeScaling::kLinear:
      return "linear";
    case RopeScaling::kDynamic:
      return "dynamic";
    case RopeScaling::kLlama3:
      return "llama3";
    case RopeScaling::kYarn:
      return "yarn";
  }
  return "?";
}

Result<RopeScaling> rope_scaling_from_name(const std::string& name) {
  if (name == "none") return RopeScaling::kNone;
  for (RopeScaling scaling : {RopeScaling::kNone, RopeScaling::kLinear, RopeScaling::kDynamic,
                              RopeScaling::kLlama3, RopeScaling::kYarn}) {
    if (name == rope_scaling_name(scaling)) return scaling;
  }
  return unimplemented("rope scaling \"" + name +
                       "\" is not supported (supported: default, linear, dynamic, llama3, yarn)");
}

Status validate(const RopeParameters& p) {
  if (!(p.theta > 1.0 && p.theta < 1e15)) return out_of_bounds("rope_theta", p.theta);
  if (p.dims < 2 || p.dims % 2 != 0 || p.dims > 65536)
    return out_of_bounds("dims", static_cast<double>(p.dims));
  if (!p.divisors.empty()) {
    if (p.divisors.size() != static_cast<size_t>(p.dims / 2)) {
      return out_of_bounds("rope_freqs length", static_cast<double>(p.divisors.size()));
    }
    for (float d : p.divisors) {
      if (!(d > 0.0f && d < 1e9f)) return out_of_bounds("rope_freqs", static_cast<double>(d));
    }
  }
  if (p.scaling == RopeScaling::kNone) return Status::ok();
  if (!(p.factor >= 1.0 && p.factor < 1e6)) return out_of_bounds("factor", p.factor);
  if (p.scaling == RopeScaling::kLinear) return Status::ok();
  if (p.original_context <= 0 || p.original_context > (int64_t{1} << 31)) {
    return out_of_bounds("original_max_position_embeddings", static_cast<double>(p.original_context));
  }
  if (p.scaling == RopeScaling::kDynamic && p.dims <= 2)
    return out_of_bounds("dims", static_cast<double>(p.dims));
  if (p.scaling == RopeScaling::kLlama3 &&
      !(p.low_freq_factor > 0.0 && p.high_freq_factor > p.low_freq_factor && p.high_freq_factor < 1e6)) {
    return out_of_bounds("high_freq_factor", p.high_freq_factor);
  }
  if (p.scaling == RopeScaling::kYarn) {
    if (!(p.beta_slow > 0.0 && p.beta_slow < 1e6)) return out_of_bounds("beta_slow", p.beta_slow);
    if (!(p.beta_fast > 0.0 && p.beta_fast < 1e6)) return out_of_bounds("beta_fast", p.beta_fast);
    if (!(p.attention_factor >= 0.0 && p.attention_factor < 1e3)) {
      return out_of_bounds("attention_factor", p.attention_factor);
    }
  }
  return Status::ok();
}

RopeFrequencies rope_frequencies(const RopeParameters& p, int64_t context) {
  const double theta = p.scaling == RopeScaling::kDynamic ? dynamic_theta(p, context) : p.theta;
  std::vector<double> inv_freq = plain(theta, p.dims);
  RopeFrequencies result;
  switch (p.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kDynamic:
      break;
    case RopeScaling::kLinear:
      for (double& f : inv_freq) f /= p.factor;
      break;
    case RopeScaling::kLlama3:
      scale_llama3(p, &inv_freq);
      break;
    case RopeScaling::kYarn:
      scale_yarn(p, &inv_freq);
      result.scale = static_cast<float>(yarn_scale(p));
      break;
  }
  for (size_t i = 0; i < p.divisors.size(); ++i) inv_freq[i] /= static_cast<double>(p.divisors[i]);
  result.inv_freq.assign(inv_freq.begin(), inv_freq.end());
  return result;
}

bool depends_on_context(const RopeParameters& p) { return p.scaling == RopeScaling::kDynamic; }

std::string identity(const RopeParameters& p) {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "%s theta=%.17g dims=%lld factor=%.17g original=%lld low=%.17g high=%.17g fast=%.17g slow=%.17g "
      "attention=%.17g mscale=%.17g mscale_all=%.17g truncate=%d",
      rope_scaling_name(p.scaling), p.theta, static_cast<long long>(p.dims), p.factor,
      static_cast<long long>(p.original_context), p.low_freq_factor, p.high_freq_factor, p.beta_fast,
      p.beta_slow, p.attention_factor, p.mscale, p.mscale_all_dim, p.truncate ? 1 : 0);
  std::string result = text;
  for (float d : p.divisors) {
    std::snprintf(text, sizeof text, " %.9g", static_cast<double>(d));
    result += text;
  }
  return result;
}

}  // namespace driftwood::model
