#include "engine/macs_per_token.h"

#include "engine/fixture_models_test.h"

namespace driftwood::engine::testing {
namespace {

// Of the fixtures: 3 layers of width 128, q and o 128 rows, k and v 64, gate, up and down 256; heads tied or
// not.
constexpr int64_t kLayers = 3 * (2 * 128 * 128 + 2 * 64 * 128 + 3 * 256 * 128);

TEST(MacsPerToken, DenseMatricesCountAsF32) {
  DW_FIXTURE_OR_SKIP(path, "llama_linear");
  const auto macs = macs_per_prompt_token(*load(path));
  ASSERT_TRUE(macs.is_ok()) << macs.status().message();
  EXPECT_EQ(macs->f32, kLayers);
  EXPECT_EQ(macs->int8, 0);
}

TEST(MacsPerToken, QuantisedMatricesCountAsInt8) {
  DW_FIXTURE_OR_SKIP(path, "llama3_mlx4");
  const auto macs = macs_per_prompt_token(*load(path));
  ASSERT_TRUE(macs.is_ok()) << macs.status().message();
  EXPECT_EQ(macs->int8, kLayers);
  EXPECT_EQ(macs->f32, 0);
}

}  // namespace
}  // namespace driftwood::engine::testing
