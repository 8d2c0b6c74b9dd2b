#include "base/math.h"

#include <bit>
#include <cstdint>

#include "base/check.h"

namespace driftwood {
namespace {

constexpr double kLn2HiF64 = 6.93147180369123816490e-01;  // 33 significant bits: n * hi is exact
constexpr double kLn2LoF64 = 1.90821492927058770002e-10;

// Round to nearest even for |x| < 2^51.
double round_even_f64(double x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = x + kMagic;
  return shifted - kMagic;
}

double scale_by_power_of_two(double x, int64_t n) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) + (static_cast<uint64_t>(n) << 52));
}

}  // namespace

double exp_f64(double x) {
  DW_CHECK(x >= -700.0 && x <= 700.0, "exp_f64 outside its domain");
  const double n = round_even_f64(x * 1.44269504088896338700);
  double r = std::fma(-n, kLn2HiF64, x);
  r = std::fma(-n, kLn2LoF64, r);
  double p = 1.0;  // Taylor to r^14 / 14!: the rest is below 2^-57 for |r| <= 0.35
  for (int k = 14; k >= 1; --k) p = std::fma(p, r / k, 1.0);
  return scale_by_power_of_two(p, static_cast<int64_t>(n));
}

double log_f64(double x) {
  DW_CHECK(x >= 2.2250738585072014e-308 && x <= 1.7976931348623157e308, "log_f64 outside its domain");
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    exponent += 1;
  }
  // log(m) = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716: odd series to s^23.
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double p = 1.0 / 23.0;
  for (int k = 21; k >= 1; k -= 2) p = std::fma(p, s2, 1.0 / k);
  const double log_m = 2.0 * s * p;
  const double n = static_cast<double>(exponent);
  return std::fma(n, kLn2HiF64, std::fma(n, kLn2LoF64, log_m));
}

double pow_f64(double base, double exponent) { return exp_f64(exponent * log_f64(base)); }

void sin_cos_f64(double x, double* sine, double* cosine) {
  DW_CHECK(x >= -1073741824.0 && x <= 1073741824.0, "sin_cos_f64 outside its domain");
  // pi/2 in three doubles; with FMA each step is rounded once.
  constexpr double kHalfPi1 = 1.5707963267948965580e+00;
  constexpr double kHalfPi2 = 6.1232339957367660359e-17;
  constexpr double kHalfPi3 = -1.4973849048591833e-33;
  const double k = round_even_f64(x * 6.36619772367581382433e-01);
  double r = std::fma(-k, kHalfPi1, x);
  r = std::fma(-k, kHalfPi2, r);
  r = std::fma(-k, kHalfPi3, r);
  const double r2 = r * r;
  double s = 1.0;  // sin(r)/r and cos(r) by Taylor, the rest below 2^-60 for |r| <= 0.79
  double c = 1.0;
  for (int i = 20; i >= 2; i -= 2) {
    s = std::fma(-s, r2 / (i * (i + 1)), 1.0);
    c = std::fma(-c, r2 / (i * (i - 1)), 1.0);
  }
  s *= r;
  switch (static_cast<int64_t>(k) & 3) {
    case 0: *sine = s; *cosine = c; break;
    case 1: *sine = c; *cosine = -s; break;
    case 2: *sine = -s; *cosine = -c; break;
    default: *sine = -c; *cosine = s; break;
  }
}

}  // namespace driftwood
