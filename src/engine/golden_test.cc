// The engine against answers it did not write: fixture models of transformers, and SmolLM2 in float32 numpy.
#include <gtest/gtest.h>

#include "engine/fixture_models_test.h"

namespace driftwood::engine::testing {
namespace {

size_t best(const float* row, size_t width) {
  return static_cast<size_t>(std::max_element(row, row + width) - row);
}

struct Comparison {
  double worst = 0;  // max |error| / max |logit|, over positions
  double mean_kl = 0;
  int best_differs = 0;  // positions whose best token differs although the golden's gap is clear
};

// A gap is clear if it exceeds `clear` times the largest logit of its row.
Comparison compare(const std::vector<float>& golden, const std::vector<float>& found, size_t width,
                   double clear) {
  Comparison result;
  const size_t rows = golden.size() / width;
  for (size_t r = 0; r < rows; ++r) {
    const float* g = golden.data() + r * width;
    const float* f = found.data() + r * width;
    double error = 0;
    double largest = 0;
    for (size_t i = 0; i < width; ++i) {
      error = std::max(error, std::abs(static_cast<double>(g[i]) - static_cast<double>(f[i])));
      largest = std::max(largest, std::abs(static_cast<double>(g[i])));
    }
    result.worst = std::max(result.worst, error / largest);
    result.mean_kl += divergence(g, f, width) / static_cast<double>(rows);
    const size_t top = best(g, width);
    float second = -INFINITY;
    for (size_t i = 0; i < width; ++i) {
      if (i != top) second = std::max(second, g[i]);
    }
    const bool is_clear = static_cast<double>(g[top] - second) > clear * largest;
    result.best_differs += is_clear && best(f, width) != top;
  }
  return result;
}

Comparison run_fixture(const std::string& path, const RunWith& setup, double clear) {
  const Golden golden(path + "/golden.safetensors");
  const Opened opened = open(load(path), setup);
  const SessionId session = open_session(*opened.engine);
  const auto found = all_logits(*opened.engine, session, golden.ids("input_ids"));
  const auto expected = golden.floats("logits");
  EXPECT_EQ(found.size(), expected.size());
  return compare(expected, found, static_cast<size_t>(opened.engine->model().config.vocab_size), clear);
}

class DenseFixture : public ::testing::TestWithParam<const char*> {};

TEST_P(DenseFixture, F32KvMatchesAtEveryPosition) {
  DW_FIXTURE_OR_SKIP(path, GetParam());
  for (const std::string& isa : available_isas()) {
    RunWith setup{isa, 2, {}};
    setup.options.kv_dtype = DType::kF32;
    const Comparison c = run_fixture(path, setup, 0.0);
    EXPECT_LE(c.worst, 1e-4) << isa;
    EXPECT_EQ(c.best_differs, 0) << isa;
  }
}

TEST_P(DenseFixture, F16KvIsClose) {
  DW_FIXTURE_OR_SKIP(path, GetParam());
  const Comparison c = run_fixture(path, {}, 6e-2);
  EXPECT_LE(c.worst, 6e-3);
  EXPECT_EQ(c.best_differs, 0);
}

TEST_P(DenseFixture, GreedyContinuationIsGolden) {
  DW_FIXTURE_OR_SKIP(path, GetParam());
  const Golden golden(path + "/golden.safetensors");
  RunWith setup;
  setup.options.kv_dtype = DType::kF32;
  const Opened opened = open(load(path), setup);
  Engine& engine = *opened.engine;
  const SessionId session = open_session(engine);
  const auto prompt = golden.ids("input_ids");
  ASSERT_TRUE(engine.append(session, prompt).is_ok());
  const auto greedy = golden.ids("greedy");
  const auto margin = golden.floats("greedy_margin");
  int compared = 0;
  for (size_t i = 0; i < greedy.size() && margin[i] > 1e-3f; ++i, ++compared) {
    ASSERT_TRUE(engine.step(session).is_ok());
    const auto token = engine.sample(session);
    ASSERT_TRUE(token.is_ok()) << token.status().message();
    ASSERT_EQ(*token, greedy[i]) << "token " << i;
    ASSERT_TRUE(engine.append(session, std::span(&greedy[i], 1)).is_ok());
  }
  EXPECT_GT(compared, 4);
}

INSTANTIATE_TEST_SUITE_P(Llama, DenseFixture, ::testing::Values("llama3", "llama_bias", "llama_linear"));

TEST(MlxFixture, F32ActivationsMatch) {
  DW_FIXTURE_OR_SKIP(path, "llama3_mlx4");
  RunWith setup;
  setup.options.kv_dtype = DType::kF32;
  setup.options.debug_f32_activations = true;
  const Comparison c = run_fixture(path, setup, 0.0);
  EXPECT_LE(c.worst, 1e-4);
  EXPECT_EQ(c.best_differs, 0);
}

TEST(MlxFixture, Int8ActivationsStayNear) {
  DW_FIXTURE_OR_SKIP(path, "llama3_mlx4");
  const Comparison c = run_fixture(path, {}, 1.0);
  EXPECT_LE(c.mean_kl, 2e-2);
  EXPECT_GT(c.worst, 1e-6) << "int8 activations can't be exact: the path was not taken";
}

TEST(MlxFixture, F32ActivationsAreForTheReferenceOnly) {
  DW_FIXTURE_OR_SKIP(path, "llama3_mlx4");
  if (available_isas().size() < 2) GTEST_SKIP() << "no other instruction set here";
  auto device = device::CpuDevice::create({1, available_isas()[1]});
  EngineOptions options;
  options.debug_f32_activations = true;
  EXPECT_EQ(Engine::create(load(path), device->get(), options).status().code(), Code::kInvalidArgument);
}

// Mean and largest KL over the last 8 rows, and the mean negative log likelihood of the text.
TEST(SmolLm2, Int8ActivationsStayNearFloat32) {
  DW_SMOLLM2_OR_SKIP(path);
  const std::string answers = fixtures_folder() + "/smollm2.logits.safetensors";
  if (!std::filesystem::exists(answers)) GTEST_SKIP() << "no fixtures at " << fixtures_folder();
  const Golden golden(answers);
  const auto model = load(path);
  const Opened opened = open(model, {available_isas().back(), 2, {}});
  const auto width = static_cast<size_t>(model->config.vocab_size);
  double kl_sum = 0;
  double kl_worst = 0;
  for (const std::string name : {"chat", "prose", "code"}) {
    const SessionId session = open_session(*opened.engine);
    const auto ids = golden.ids(name + ".ids");
    const auto found = all_logits(*opened.engine, session, ids);
    const auto expected = golden.floats(name + ".logits");
    const float* tail = found.data() + found.size() - expected.size();
    for (size_t r = 0; r < 8; ++r) {
      const double kl = divergence(expected.data() + r * width, tail + r * width, width);
      kl_sum += kl;
      kl_worst = std::max(kl_worst, kl);
    }
    double nll = 0;
    double golden_nll = 0;
    const auto golden_rows = golden.floats(name + ".nll");
    for (size_t t = 0; t + 1 < ids.size(); ++t) {
      const float* row = found.data() + t * width;
      const double top = *std::max_element(row, row + width);
      double sum = 0;
      for (size_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(row[i]) - top);
      nll += top + std::log(sum) - static_cast<double>(row[ids[t + 1]]);
      golden_nll += static_cast<double>(golden_rows[t]);
    }
    EXPECT_NEAR(nll / golden_nll, 1.0, 0.015) << name;
    ASSERT_TRUE(opened.engine->close(session).is_ok());
  }
  RecordProperty("mean_kl", std::to_string(kl_sum / 24));
  RecordProperty("worst_kl", std::to_string(kl_worst));
  EXPECT_LE(kl_sum / 24, 5e-3);
  EXPECT_LE(kl_worst, 3e-2);
}

}  // namespace
}  // namespace driftwood::engine::testing
