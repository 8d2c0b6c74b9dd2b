#include "base/math.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace driftwood {
namespace {

TEST(Math, ExpStaysWithinOneUlp) {
  for (float x = -87.0f; x <= 88.0f; x += 0.0071f) {
    const double exact = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, static_cast<int>(std::floor(std::log2(exact))) - 23);
    ASSERT_LE(std::abs(exp_f32(x) - exact), ulp) << x;
  }
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-1000.0f), 0.0f);
  EXPECT_TRUE(std::isinf(exp_f32(1000.0f)));
  EXPECT_TRUE(std::isnan(exp_f32(NAN)));
}

TEST(Math, DoubleFunctionsAgreeWithLibm) {
  for (int i = 0; i < 200000; ++i) {
    const double x = i * 7.3123;
    double s = 0, c = 0;
    sin_cos_f64(x, &s, &c);
    ASSERT_NEAR(s, std::sin(x), 3e-16) << x;
    ASSERT_NEAR(c, std::cos(x), 3e-16) << x;
  }
  for (double x = 1e-3; x < 1e6; x *= 1.01) {
    ASSERT_NEAR(pow_f64(x, 0.37) / std::pow(x, 0.37), 1.0, 2e-15) << x;
  }
}

TEST(Half, EveryF16RoundTrips) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float x = f16_to_f32(static_cast<uint16_t>(h));
    if (std::isnan(x)) continue;
    ASSERT_EQ(f32_to_f16(x), h);
  }
}

TEST(Half, RoundsTiesToEven) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);            // halfway, even below
  EXPECT_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);        // halfway, even above
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 0x0001);
  EXPECT_EQ(f32_to_bf16(1.00390625f), 0x3f80);
}

TEST(Rng, PhiloxMatchesThePublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

}  // namespace
}  // namespace driftwood
