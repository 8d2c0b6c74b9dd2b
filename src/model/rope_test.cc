// Frequencies against values computed from the published formulas in double by another program.
#include "model/rope.h"

#include <gtest/gtest.h>

namespace driftwood::model {
namespace {

void expect_frequencies(const RopeParameters& p, int64_t context, const std::vector<double>& expected) {
  ASSERT_TRUE(validate(p).is_ok()) << validate(p).message();
  const RopeFrequencies found = rope_frequencies(p, context);
  ASSERT_EQ(found.inv_freq.size(), static_cast<size_t>(p.dims / 2));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(found.inv_freq[i]) / expected[i], 1.0, 2e-7) << "frequency " << i;
  }
}

TEST(Rope, Llama3StretchesLongWavesOnly) {
  RopeParameters p;
  p.scaling = RopeScaling::kLlama3;
  p.theta = 500000.0;
  p.dims = 32;
  p.factor = 8.0;
  p.original_context = 64;
  expect_frequencies(p, 512,
                     {1, 0.440366603, 0.0794030092, 0.0106746375, 0.00470075387, 0.00207005501,
                      0.000911583092, 0.000401430749, 0.000176776695, 7.78465527e-05, 3.4281022e-05,
                      1.50962172e-05, 6.64786987e-06, 2.92749987e-06, 1.28917317e-06, 5.6770881e-07});
}

TEST(Rope, YarnBlendsAndScales) {
  RopeParameters p;
  p.scaling = RopeScaling::kYarn;
  p.dims = 64;
  p.factor = 4.0;
  p.original_context = 4096;
  expect_frequencies(p, 16384,
                     {1,
                      0.749894209,
                      0.562341325,
                      0.421696503,
                      0.316227766,
                      0.237137371,
                      0.177827941,
                      0.133352143,
                      0.1,
                      0.0749894209,
                      0.0562341325,
                      0.0397367859,
                      0.0279739947,
                      0.0196094364,
                      0.0136790724,
                      0.00948851788,
                      0.00653846154,
                      0.00447052317,
                      0.00302799175,
                      0.00202738704,
                      0.0013378867,
                      0.000866463469,
                      0.000547162895,
                      0.000333380358,
                      0.00025,
                      0.000187473552,
                      0.000140585331});
  EXPECT_FLOAT_EQ(rope_frequencies(p, 16384).scale, 1.138629436f);
  p.attention_factor = 0.5;
  EXPECT_FLOAT_EQ(rope_frequencies(p, 16384).scale, 0.5f);
}

TEST(Rope, DynamicFollowsTheSessionsContext) {
  RopeParameters p;
  p.scaling = RopeScaling::kDynamic;
  p.dims = 16;
  p.factor = 2.0;
  p.original_context = 2048;
  EXPECT_TRUE(depends_on_context(p));
  expect_frequencies(p, 8192,
                     {1, 0.239481356, 0.0573513199, 0.0137345719, 0.00328917389, 0.000787695824,
                      0.000188638464, 4.51753951e-05});
  RopeParameters plain = p;
  plain.scaling = RopeScaling::kNone;
  EXPECT_EQ(rope_frequencies(p, 1000).inv_freq, rope_frequencies(plain, 0).inv_freq)
      << "within the original context";
}

TEST(Rope, LinearAndDivisors) {
  RopeParameters p;
  p.dims = 4;
  p.scaling = RopeScaling::kLinear;
  p.factor = 4.0;
  expect_frequencies(p, 0, {0.25, 0.0025});
  p.divisors = {1.0f, 10.0f};
  expect_frequencies(p, 0, {0.25, 0.00025});
}

TEST(Rope, RefusesUnknownTypesAndWildValues) {
  const auto unknown = rope_scaling_from_name("longrope");
  ASSERT_FALSE(unknown.is_ok());
  EXPECT_EQ(unknown.status().code(), Code::kUnimplemented);
  EXPECT_NE(unknown.status().message().find("\"longrope\""), std::string::npos);
  RopeParameters p;
  p.dims = 7;
  EXPECT_NE(validate(p).message().find("dims"), std::string::npos);
  p.dims = 8;
  p.theta = -1.0;
  EXPECT_NE(validate(p).message().find("rope_theta"), std::string::npos);
  p.theta = 10000.0;
  p.scaling = RopeScaling::kYarn;
  p.factor = 0.0;
  EXPECT_NE(validate(p).message().find("factor"), std::string::npos);
}

TEST(Rope, EveryParameterIsPartOfTheIdentity) {
  const RopeParameters base{.dims = 64};
  std::vector<RopeParameters> changed(12, base);
  changed[0].scaling = RopeScaling::kLinear;
  changed[1].theta = 5.0;
  changed[2].dims = 32;
  changed[3].factor = 2.0;
  changed[4].original_context = 5;
  changed[5].low_freq_factor = 2.0;
  changed[6].high_freq_factor = 2.0;
  changed[7].beta_fast = 2.0;
  changed[8].beta_slow = 2.0;
  changed[9].attention_factor = 2.0;
  changed[10].truncate = false;
  changed[11].divisors = {1.0f};
  for (size_t i = 0; i < changed.size(); ++i) EXPECT_NE(identity(changed[i]), identity(base)) << i;
}

}  // namespace
}  // namespace driftwood::model
