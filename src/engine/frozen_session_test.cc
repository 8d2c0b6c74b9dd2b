// Sessions as values: a thawed session goes on with the same bytes as one that never stopped, wherever it is
// thawed, and computes nothing twice; what does not fit is refused and changes nothing.
#include "engine/frozen_session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/rng.h"
#include "engine/continuity.h"
#include "engine/fixture_models_test.h"

namespace driftwood::engine::testing {
namespace {

constexpr int64_t kTokensOn = 16;

std::string fastest() { return available_isas().back(); }

std::string path_of(const std::string& name) {
  return name == "smollm2" ? environment("DRIFTWOOD_SMOLLM2") : fixture_model(name);
}

SessionOptions greedy() { return {128, {}}; }

SessionOptions sampled() {
  SessionOptions options = greedy();
  options.sampling.temperature = 0.8f;
  options.sampling.top_p = 0.95f;
  options.sampling.repetition_penalty = 1.1f;
  options.sampling.presence_penalty = 0.2f;
  options.sampling.frequency_penalty = 0.1f;
  options.sampling.penalty_last_n = 24;
  options.sampling.logit_bias = {{7, 1.5f}, {9, -2.0f}};
  options.sampling.seed = 0x9e3779b97f4a7c15u;
  options.sampling.stream = 3;
  return options;
}

std::vector<int32_t> ids_for(const LoadedModel& model, int64_t count, uint64_t seed = 1) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t draw = random_u64(seed, 0, static_cast<uint64_t>(i), 0);
    ids.push_back(static_cast<int32_t>(draw % static_cast<uint64_t>(model.config.vocab_size)));
  }
  return ids;
}

// What a session does next: token ids, every row of logits, and the state it ends in.
struct Trace {
  std::vector<int32_t> drawn;
  std::vector<float> logits;
  FrozenSession end;
};

// An empty session is given one token to start from.
Trace go_on(Engine& engine, SessionId session, int64_t count = kTokensOn) {
  Trace trace;
  const auto take_step = [&](int32_t id) {
    EXPECT_TRUE(engine.append(session, std::span(&id, 1)).is_ok());
    EXPECT_TRUE(engine.step(session).is_ok());
  };
  if (*engine.length(session) == 0) take_step(5);
  EXPECT_TRUE(engine.step(session).is_ok()) << "what was pending";
  for (int64_t i = 0; i < count; ++i) {
    const auto logits = engine.logits(session);
    const auto token = engine.sample(session);
    if (!logits.is_ok() || !token.is_ok()) {
      ADD_FAILURE() << logits.status().message() << token.status().message();
      return trace;
    }
    trace.logits.insert(trace.logits.end(), logits->begin(), logits->end());
    trace.drawn.push_back(*token);
    take_step(*token);
  }
  trace.end = std::move(*engine.freeze(session));
  copy_kv(&trace.end);
  return trace;
}

void expect_same(const Trace& expected, const Trace& found, const std::string& what) {
  EXPECT_EQ(expected.drawn, found.drawn) << what;
  EXPECT_TRUE(same_bytes(expected.logits, found.logits)) << what;
  EXPECT_EQ(first_difference(expected.end, found.end), "") << what;
}

// `computed` tokens in KV, `pending` more appended.
SessionId prepare(Engine& engine, const SessionOptions& options, int64_t computed, int64_t pending) {
  const auto ids = ids_for(engine.model(), computed + pending);
  const SessionId session = open_session(engine, options);
  const auto front = static_cast<size_t>(computed);
  EXPECT_TRUE(engine.append(session, std::span(ids).first(front)).is_ok());
  if (computed > 0) {
    EXPECT_TRUE(engine.step(session).is_ok());
  }
  EXPECT_TRUE(engine.append(session, std::span(ids).subspan(front)).is_ok());
  return session;
}

Trace never_stopped(Engine& engine, const SessionOptions& options, int64_t computed, int64_t pending) {
  const SessionId session = prepare(engine, options, computed, pending);
  const Trace trace = go_on(engine, session);
  EXPECT_TRUE(engine.close(session).is_ok());
  return trace;
}

// Freezes in `from` at a place, closes, and goes on in `to`.
Trace stopped(Engine& from, Engine& to, const SessionOptions& options, int64_t computed, int64_t pending) {
  const SessionId before = prepare(from, options, computed, pending);
  auto frozen = from.freeze(before);
  EXPECT_TRUE(frozen.is_ok()) << frozen.status().message();
  EXPECT_TRUE(from.close(before).is_ok());
  EXPECT_EQ(frozen->computed, computed);
  EXPECT_EQ(frozen->has_logits, pending == 0 && computed > 0);
  const auto thawed = to.thaw(*frozen);
  EXPECT_TRUE(thawed.is_ok()) << thawed.status().message();
  if (!thawed.is_ok()) return {};
  EXPECT_EQ(*to.computed(*thawed), computed);
  EXPECT_EQ(*to.length(*thawed), computed + pending);
  EXPECT_EQ(first_difference(*frozen, *to.freeze(*thawed)), "");
  const Trace trace = go_on(to, *thawed);
  const int64_t first = computed + pending == 0 ? 1 : pending;
  EXPECT_EQ(*to.rows_computed(*thawed), first + kTokensOn) << "a token was computed twice";
  EXPECT_TRUE(to.close(*thawed).is_ok());
  return trace;
}

class Frozen : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = path_of(GetParam());
    if (path.empty()) GTEST_SKIP() << "no files for " << GetParam();
    model_ = load(path);
    ASSERT_NE(model_, nullptr);
  }
  bool slow() const { return std::string(GetParam()) == "smollm2"; }

  std::shared_ptr<LoadedModel> model_;
};

TEST_P(Frozen, GoesOnAtAnyBoundaryHereAndElsewhere) {
  const Opened here = open(model_, {fastest(), 2, {}});
  for (const SessionOptions& options : {greedy(), sampled()}) {
    const Opened other = open(model_, {fastest(), 1, {}});
    for (int64_t boundary : {0, 1, 31, 32, 33, 63, 64, 65}) {
      const std::string at =
          std::to_string(boundary) + " tokens, temperature " + std::to_string(options.sampling.temperature);
      const Trace expected = never_stopped(*here.engine, options, boundary, 0);
      expect_same(expected, stopped(*here.engine, *here.engine, options, boundary, 0), "same engine, " + at);
      expect_same(expected, stopped(*here.engine, *other.engine, options, boundary, 0), "new engine, " + at);
    }
    EXPECT_EQ(other.engine->stats().kv_blocks_in_use, 0);
  }
  EXPECT_EQ(here.engine->stats().kv_blocks_in_use, 0);
}

TEST_P(Frozen, GoesOnInTheMiddleOfAPrompt) {
  const Opened here = open(model_, {fastest(), 2, {}});
  const Opened other = open(model_, {fastest(), 1, {}});
  struct Place {
    int64_t computed, pending;
  };
  for (const Place& place : {Place{0, 5}, Place{1, 1}, Place{31, 2}, Place{32, 1}, Place{40, 30}}) {
    const auto [computed, pending] = place;
    const std::string at = std::to_string(computed) + " computed, " + std::to_string(pending) + " pending";
    const Trace expected = never_stopped(*here.engine, sampled(), computed, pending);
    expect_same(expected, stopped(*here.engine, *other.engine, sampled(), computed, pending), at);
  }
}

TEST_P(Frozen, MovesBetweenInstructionSets) {
  if (fastest() == "ref") GTEST_SKIP() << "no other instruction set here";
  const Opened reference = open(model_, {"ref", 2, {}});
  const Opened fast = open(model_, {fastest(), 2, {}});
  // The scalar reference is slow.
  for (int64_t boundary : slow() ? std::vector<int64_t>{5} : std::vector<int64_t>{0, 1, 31, 32, 33, 65}) {
    const std::string at = std::to_string(boundary) + " tokens";
    const Trace expected = never_stopped(*fast.engine, sampled(), boundary, 0);
    expect_same(expected, stopped(*reference.engine, *fast.engine, sampled(), boundary, 0),
                "from ref, " + at);
    if (slow()) continue;
    expect_same(expected, stopped(*fast.engine, *reference.engine, sampled(), boundary, 0), "to ref, " + at);
  }
}

// Sessions that step without end in an engine, until it goes.
class Neighbours {
 public:
  explicit Neighbours(Engine& engine) {
    for (uint64_t k = 1; k <= 2; ++k) {
      threads_.emplace_back([this, &engine, k] {
        while (!stop_.load()) {
          const SessionId session = open_session(engine, sampled());
          for (int32_t id : ids_for(engine.model(), 50, k)) {
            if (stop_.load()) break;
            failures_ += !engine.append(session, std::span(&id, 1)).is_ok();
            failures_ += !engine.step(session).is_ok();
            if (id % 8 == 0) failures_ += !engine.freeze(session).is_ok();
          }
          failures_ += !engine.close(session).is_ok();
        }
      });
    }
  }
  ~Neighbours() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
    EXPECT_EQ(failures_.load(), 0);
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> failures_{0};
  std::vector<std::thread> threads_;
};

TEST_P(Frozen, GoesOnBesideOthers) {
  const Opened here = open(model_, {fastest(), 2, {}});
  const Opened other = open(model_, {fastest(), 1, {}});
  std::vector<Trace> expected;
  const std::vector<int64_t> boundaries =
      slow() ? std::vector<int64_t>{31, 64} : std::vector<int64_t>{1, 31, 32, 65};
  for (int64_t b : boundaries) expected.push_back(never_stopped(*here.engine, sampled(), b, 0));
  {
    const Neighbours beside_here(*here.engine);
    const Neighbours beside_there(*other.engine);
    for (size_t i = 0; i < boundaries.size(); ++i) {
      const std::string at = std::to_string(boundaries[i]) + " tokens";
      expect_same(expected[i], stopped(*here.engine, *here.engine, sampled(), boundaries[i], 0), at);
      expect_same(expected[i], stopped(*here.engine, *other.engine, sampled(), boundaries[i], 0), at);
    }
  }
  EXPECT_EQ(here.engine->stats().kv_blocks_in_use, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Frozen,
                         ::testing::Values("llama3", "llama_bias", "llama_linear", "llama3_mlx4", "smollm2"));

}  // namespace
}  // namespace driftwood::engine::testing
