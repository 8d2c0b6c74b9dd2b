#include "sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "sampler/weight.h"

namespace driftwood::sampler {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Roughly normal with standard deviation `scale`, the same in every run.
std::vector<float> random_logits(size_t count, float scale, uint64_t seed) {
  std::vector<float> logits(count);
  for (size_t i = 0; i < count; ++i) {
    float sum = -2.0f;
    for (uint32_t k = 0; k < 4; ++k) sum += random_uniform(seed, 0, i, k);
    logits[i] = sum * 1.7f * scale;
  }
  return logits;
}

int32_t sample_or_die(Sampler& sampler, std::span<const float> logits, int64_t position,
                      std::span<const int32_t> history = {}, std::span<const uint64_t> allowed = {}) {
  Result<int32_t> token = sampler.sample(logits, history, position, allowed);
  EXPECT_TRUE(token.is_ok()) << token.status().to_string();
  return token.is_ok() ? *token : -1;
}

std::set<int32_t> drawn(const SamplerParams& params, std::span<const float> logits, int draws) {
  Sampler sampler(params);
  std::set<int32_t> tokens;
  for (int i = 0; i < draws; ++i) tokens.insert(sample_or_die(sampler, logits, i));
  return tokens;
}

// The chain written the obvious way: one full sort, long double probabilities for the weights' own
// definition.
int32_t reference_draw(const SamplerParams& p, std::vector<float> logits, int64_t position) {
  struct Item {
    uint64_t weight;
    int32_t id;
  };
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](int32_t id) { return !(logits[id] > -kInf); });
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (p.top_k > 0 && ids.size() > static_cast<size_t>(p.top_k)) ids.resize(p.top_k);
  std::vector<Item> items;
  for (int32_t id : ids) {
    uint64_t weight = 0;
    softmax_weights({&logits[id], 1}, logits[ids[0]], p.temperature, {&weight, 1});
    const double floor = std::ceil(static_cast<double>(p.min_p) * 0x1p40);
    if (weight > 0 && static_cast<double>(weight) >= floor) items.push_back({weight, id});
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  });
  uint64_t total = 0;
  for (const Item& item : items) total += item.weight;
  uint64_t kept = 0;
  size_t count = 0;
  const double goal = std::ceil(static_cast<double>(p.top_p) * static_cast<double>(total));
  do kept += items[count++].weight;
  while (count < items.size() && static_cast<double>(kept) < goal);
  items.resize(count);
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.id < b.id; });
  const uint64_t k = random_u64(p.seed, p.stream, position, 0) >> 40;
  const auto target = static_cast<uint64_t>((static_cast<unsigned __int128>(kept) * k) >> 24);
  uint64_t running = 0;
  for (const Item& item : items) {
    running += item.weight;
    if (running > target) return item.id;
  }
  return -1;
}

TEST(Sampler, AgreesWithTheObviousAlgorithm) {
  for (uint64_t round = 0; round < 300; ++round) {
    const auto pick = [&](uint32_t index, std::vector<float> choices) {
      return choices[random_u64(round, 1, 0, index) % choices.size()];
    };
    const size_t vocab = 1 + random_u64(round, 1, 0, 9) % 3000;
    std::vector<float> logits = random_logits(vocab, pick(0, {0.01f, 1.0f, 4.0f, 30.0f}), round);
    if (round % 3 == 0) {
      for (float& x : logits) x = std::round(x);  // many ties
    }
    for (size_t i = 1; i < vocab; i += 97) logits[i] = i % 2 ? kNan : -kInf;
    SamplerParams params;
    params.seed = round;
    params.temperature = pick(1, {0.01f, 0.7f, 1.0f, 3.0f, 100.0f});
    params.top_k = static_cast<int32_t>(pick(2, {0, 0, 1, 2, 40, 700, 5000}));
    params.top_p = pick(3, {0.0f, 0.1f, 0.5f, 0.95f, 0.9999f, 1.0f});
    params.min_p = pick(4, {0.0f, 0.0f, 0.05f, 0.5f, 1.0f});
    Sampler sampler(params);
    for (int64_t position = 0; position < 4; ++position) {
      ASSERT_EQ(sample_or_die(sampler, logits, position), reference_draw(params, logits, position))
          << "round " << round << " position " << position;
    }
  }
}

TEST(Sampler, IsAPureFunctionOfItsInputs) {
  const std::vector<float> logits = random_logits(5000, 3.0f, 1);
  SamplerParams params;
  params.temperature = 0.9f;
  params.top_p = 0.9f;
  params.repetition_penalty = 1.2f;
  const std::vector<int32_t> history = {1, 5, 5, 4999};
  Sampler used(params);
  std::vector<int32_t> first;
  for (int64_t i = 0; i < 50; ++i) first.push_back(sample_or_die(used, logits, i, history));
  for (int64_t i = 49; i >= 0; --i) {
    Sampler fresh(params);
    ASSERT_EQ(sample_or_die(fresh, logits, i, history), first[i]);
    ASSERT_EQ(sample_or_die(used, logits, i, history), first[i]);
  }
  params.stream = 7;
  Sampler forked(params);
  std::vector<int32_t> other;
  for (int64_t i = 0; i < 50; ++i) other.push_back(sample_or_die(forked, logits, i, history));
  EXPECT_NE(first, other);
}

// Chi-square with 7 degrees of freedom: 24.3 is passed by chance once in 1,000; the draws are fixed, so never
// twice.
TEST(Sampler, FollowsTheDistribution) {
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -0.5f, 1.5f, -2.0f};
  for (float temperature : {0.5f, 1.0f, 2.0f}) {
    SamplerParams params;
    params.temperature = temperature;
    params.seed = 42;
    Sampler sampler(params);
    constexpr int kDraws = 20000;
    std::vector<int> seen(logits.size());
    for (int i = 0; i < kDraws; ++i) ++seen[sample_or_die(sampler, logits, i)];
    double total = 0;
    for (float x : logits) total += std::exp(x / temperature);
    double chi = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double expected = kDraws * std::exp(logits[i] / temperature) / total;
      chi += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    EXPECT_LT(chi, 24.3) << temperature;
  }
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowerOfEquals) {
  Sampler greedy{SamplerParams{}};
  EXPECT_EQ(sample_or_die(greedy, std::vector<float>{1.0f, 3.0f, 3.0f}, 0), 1);
  EXPECT_EQ(sample_or_die(greedy, std::vector<float>{kNan, -5.0f, kNan}, 0), 1);
  EXPECT_EQ(sample_or_die(greedy, std::vector<float>{-kInf, kInf, kInf}, 0), 1);
  EXPECT_EQ(sample_or_die(greedy, std::vector<float>{-0.0f, 0.0f}, 0), 0);
  for (size_t size : {1u, 15u, 16u, 17u, 2047u, 2048u, 2049u, 49152u}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const std::vector<float> logits = random_logits(size, 1.0f, seed + size);
      const auto expected = std::max_element(logits.begin(), logits.end()) - logits.begin();
      ASSERT_EQ(sample_or_die(greedy, logits, 0), expected);
    }
  }
}

TEST(Sampler, TopK) {
  const std::vector<float> logits = {1.0f, 2.0f, 2.0f, 3.0f, 2.0f};
  SamplerParams params;
  params.temperature = 5.0f;
  params.top_k = 3;
  EXPECT_EQ(drawn(params, logits, 400), (std::set<int32_t>{1, 2, 3}));  // of the equal ones the lower two
  params.top_k = 1;
  EXPECT_EQ(drawn(params, logits, 50), (std::set<int32_t>{3}));
  for (int32_t all : {0, 5, 6, std::numeric_limits<int32_t>::max()}) {
    params.top_k = all;
    EXPECT_EQ(drawn(params, logits, 400).size(), 5u);
  }
  params.top_k = 4;  // fewer than four are possible
  EXPECT_EQ(drawn(params, std::vector<float>{kNan, 1.0f, -kInf, 1.0f, -kInf, kNan}, 100),
            (std::set<int32_t>{1, 3}));
}

TEST(Sampler, TopPAndMinP) {
  // Probabilities 0.4, 0.3, 0.2, 0.1.
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  SamplerParams params;
  params.temperature = 1.0f;
  const auto with_top_p = [&](float p) {
    params.top_p = p;
    return drawn(params, logits, 400);
  };
  EXPECT_EQ(with_top_p(0.0f), (std::set<int32_t>{1}));
  EXPECT_EQ(with_top_p(0.39f), (std::set<int32_t>{1}));
  EXPECT_EQ(with_top_p(0.41f), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(with_top_p(0.71f), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(with_top_p(1.0f).size(), 4u);
  const auto with_min_p = [&](float p) {
    params.min_p = p;
    return drawn(params, logits, 400);
  };
  EXPECT_EQ(with_min_p(1.0f), (std::set<int32_t>{1}));
  EXPECT_EQ(with_min_p(0.74f), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(with_min_p(0.26f), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(with_min_p(0.0f).size(), 4u);
  // top_p looks at what min_p left: 0.4 + 0.3 renormalised, of which 0.4 is 0.571.
  params.min_p = 0.74f;
  EXPECT_EQ(with_top_p(0.57f), (std::set<int32_t>{1}));
  EXPECT_EQ(with_top_p(0.58f), (std::set<int32_t>{1, 3}));
}

TEST(Sampler, Penalties) {
  SamplerParams params;
  params.repetition_penalty = 2.0f;
  Sampler sampler(params);
  const std::vector<int32_t> history = {0, 1};
  // 5 / 2 < 3, and -1 * 2 < -1.5.
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{5.0f, 0.0f, 3.0f}, 2, history), 2);
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{-1.0f, -9.0f, -1.5f}, 2, history), 2);
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{6.5f, 0.0f, 3.0f}, 2, history), 0);

  params = {};
  params.presence_penalty = 1.0f;
  sampler.set_params(params);
  const std::vector<int32_t> twice = {0, 0, 1};
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{4.0f, 0.0f, 3.1f}, 3, twice), 2);
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{4.2f, 0.0f, 3.1f}, 3, twice), 0);  // counted once
  params.presence_penalty = 0.0f;
  params.frequency_penalty = 1.0f;
  sampler.set_params(params);
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{4.2f, 0.0f, 3.1f}, 3, twice), 2);  // counted twice
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{5.2f, 0.0f, 3.1f}, 3, twice), 0);

  params.penalty_last_n = 1;  // sees token 1 only
  sampler.set_params(params);
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{4.2f, 4.3f, 3.1f}, 3, twice), 0);
  params.penalty_last_n = 0;
  sampler.set_params(params);
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{4.2f, 4.3f, 3.1f}, 3, twice), 1);
  std::vector<int32_t> long_history(100, 2);
  long_history[0] = 1;
  params.penalty_last_n = -1;
  sampler.set_params(params);
  EXPECT_EQ(sample_or_die(sampler, std::vector<float>{4.2f, 4.3f, 4.4f}, 100, long_history), 0);
}

TEST(Sampler, BiasAndMask) {
  SamplerParams params;
  params.logit_bias = {{0, 5.0f}, {2, -kInf}};
  Sampler sampler(params);
  const std::vector<float> logits = {1.0f, 2.0f, 50.0f};
  EXPECT_EQ(sample_or_die(sampler, logits, 0), 0);
  const std::vector<uint64_t> mask = {0b010};
  for (float temperature : {0.0f, 1.0f}) {
    params.temperature = temperature;
    sampler.set_params(params);
    EXPECT_EQ(sample_or_die(sampler, logits, 0, {}, mask), 1);
  }
  const std::vector<float> wide = random_logits(200, 1.0f, 3);
  std::vector<uint64_t> only(4);
  only[2] = uint64_t{1} << 5;
  sampler.set_params({});
  EXPECT_EQ(sample_or_die(sampler, wide, 0, {}, only), 133);
}

TEST(Sampler, NothingLeftIsAnError) {
  for (float temperature : {0.0f, 1.0f}) {
    SamplerParams params;
    params.temperature = temperature;
    params.top_p = 0.9f;
    for (int32_t top_k : {0, 1}) {
      params.top_k = top_k;
      Sampler sampler(params);
      const auto code = [&](std::vector<float> logits, std::vector<uint64_t> mask) {
        return sampler.sample(logits, {}, 0, mask).status().code();
      };
      EXPECT_EQ(code({-kInf, -kInf}, {}), Code::kFailedPrecondition);
      EXPECT_EQ(code({kNan, kNan}, {}), Code::kFailedPrecondition);
      EXPECT_EQ(code({1.0f, 2.0f}, {0}), Code::kFailedPrecondition);
      EXPECT_EQ(code({1.0f, 2.0f}, {0b100}), Code::kFailedPrecondition);  // a bit behind the vocabulary
      EXPECT_EQ(code({1.0f, 2.0f}, {1, 1}), Code::kInvalidArgument);
      EXPECT_EQ(code({}, {}), Code::kInvalidArgument);
    }
  }
}

TEST(Sampler, InfiniteLogitsWin) {
  SamplerParams params;
  params.temperature = 1.0f;
  EXPECT_EQ(drawn(params, std::vector<float>{kInf, 1.0f, kNan, kInf}, 100), (std::set<int32_t>{0, 3}));
  params.temperature = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(drawn(params, std::vector<float>{1.0f, 1.5f, kNan, -3e38f}, 20), (std::set<int32_t>{1}));
}

TEST(Sampler, BadParametersNameTheField) {
  const auto message = [](auto change) {
    SamplerParams params;
    change(params);
    const Status status = validate(params, 100);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_FALSE(Sampler(params).sample(std::vector<float>(100), {}, 0).is_ok());
    return status.message();
  };
  const auto names = [](const std::string& text, const char* field) { return text.find(field) == 0; };
  EXPECT_TRUE(names(message([](auto& p) { p.temperature = -1; }), "temperature"));
  EXPECT_TRUE(names(message([](auto& p) { p.temperature = kNan; }), "temperature"));
  EXPECT_TRUE(names(message([](auto& p) { p.top_k = -1; }), "top_k"));
  EXPECT_TRUE(names(message([](auto& p) { p.top_p = 1.1f; }), "top_p"));
  EXPECT_TRUE(names(message([](auto& p) { p.top_p = kNan; }), "top_p"));
  EXPECT_TRUE(names(message([](auto& p) { p.min_p = -0.1f; }), "min_p"));
  EXPECT_TRUE(names(message([](auto& p) { p.repetition_penalty = 0; }), "repetition_penalty"));
  EXPECT_TRUE(names(message([](auto& p) { p.presence_penalty = kInf; }), "presence_penalty"));
  EXPECT_TRUE(names(message([](auto& p) { p.frequency_penalty = kNan; }), "frequency_penalty"));
  EXPECT_TRUE(names(message([](auto& p) { p.penalty_last_n = -2; }), "penalty_last_n"));
  EXPECT_TRUE(names(message([](auto& p) { p.logit_bias = {{100, 1.0f}}; }), "logit_bias"));
  EXPECT_TRUE(names(message([](auto& p) { p.logit_bias = {{-1, 1.0f}}; }), "logit_bias"));
  EXPECT_TRUE(names(message([](auto& p) { p.logit_bias = {{1, kInf}}; }), "logit_bias"));
  EXPECT_TRUE(validate(SamplerParams{}, 49152).is_ok());

  SamplerParams penalised;
  penalised.repetition_penalty = 1.1f;
  const std::vector<int32_t> history = {5, 100};
  const Status status = Sampler(penalised).sample(std::vector<float>(100), history, 2).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("token 100 at position 1"), std::string::npos) << status.message();
}

TEST(Weight, IsTheRoundedExponential) {
  for (float temperature : {0.3f, 1.0f, 2.5f}) {
    for (float x = 0.0f; x > -90.0f; x -= 0.0137f) {
      uint64_t weight = 0;
      softmax_weights({&x, 1}, 0.0f, temperature, {&weight, 1});
      const double exact = std::exp(static_cast<double>(x) / temperature) * 0x1p40;
      ASSERT_NEAR(static_cast<double>(weight), exact, 0.5 + exact * 3e-10) << x;
    }
  }
  const std::vector<float> values = {7.0f, kNan, -kInf, -3.4e38f};
  std::vector<uint64_t> weights(4);
  softmax_weights(values, 7.0f, 1.0f, weights);
  EXPECT_EQ(weights, (std::vector<uint64_t>{kWholeWeight, 0, 0, 0}));
}

// Bits that must not change: another value here is another sampling arithmetic.
TEST(Weight, KnownValues) {
  const std::vector<float> values = {0.0f, -0.5f, -1.0f, -2.75f, -10.0f, -28.0f};
  std::vector<uint64_t> weights(values.size());
  softmax_weights(values, 0.0f, 1.0f, weights);
  EXPECT_EQ(weights, (std::vector<uint64_t>{1099511627776u, 666887512956u, 404487723223u, 70289426736u,
                                            49917751u, 1u}));
}

}  // namespace
}  // namespace driftwood::sampler
