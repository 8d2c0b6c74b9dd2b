// Elementary functions over Vec, operation by operation as base/math.h. Include after a vec16_ISA.h.
#pragma once

#ifndef DW_ISA
#error "include a vec16_ISA.h first"
#endif

#include "base/math.h"

namespace driftwood::kernels::DW_ISA {
namespace {

// exp_f32. NaN lanes come out NaN by themselves: the polynomial carries them and the exponent step adds 0.
DW_ALWAYS_INLINE Vec exp_lanes(Vec x) {
  const Vec magic = set(12582912.0f);
  const Vec n = sub(add(mul(x, set(kLog2E)), magic), magic);
  Vec r = fma(negate(n), set(kLn2Hi), x);
  r = fma(negate(n), set(kLn2Lo), r);
  Vec p = set(kExpC7);
  p = fma(p, r, set(kExpC6));
  p = fma(p, r, set(kExpC5));
  p = fma(p, r, set(kExpC4));
  p = fma(p, r, set(kExpC3));
  p = fma(p, r, set(kExpC2));
  p = fma(p, r, set(1.0f));
  p = fma(p, r, set(1.0f));
  p = scale_by_power(p, n);
  p = select(less_than(x, set(kExpLow)), set(0.0f), p);
  return select(less_than(set(kExpHigh), x), set(__builtin_inff()), p);
}

DW_ALWAYS_INLINE Vec silu(Vec x) { return mul(x, div(set(1.0f), add(set(1.0f), exp_lanes(negate(x))))); }

}  // namespace
}  // namespace driftwood::kernels::DW_ISA
