// What freeze() hands out and shares, and what thaw() refuses.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "engine/continuity.h"
#include "engine/fixture_models_test.h"

namespace driftwood::engine::testing {
namespace {

std::string fastest() { return available_isas().back(); }

void expect_error(const Status& status, Code code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status.to_string();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

std::vector<int32_t> counting(int32_t first, int32_t count) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back((first + 7 * i) % 320);
  return ids;
}

class Freeze : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = fixture_model("llama3");
    if (path.empty()) GTEST_SKIP() << "no fixture model llama3: DRIFTWOOD_FIXTURE_MODELS is not set";
    model_ = load(path);
    reopen({});
  }
  void reopen(EngineOptions options) {
    opened_ = open(model_, {fastest(), 1, options});
    ASSERT_NE(opened_.engine, nullptr);
  }
  Engine& engine() { return *opened_.engine; }
  int64_t blocks() { return engine().stats().kv_blocks_in_use; }

  void advance(SessionId session, const std::vector<int32_t>& ids) {
    ASSERT_TRUE(engine().append(session, ids).is_ok());
    ASSERT_TRUE(engine().step(session).is_ok());
  }
  SessionId session_of(const std::vector<int32_t>& ids, int64_t max_tokens = 128) {
    const SessionId session = open_session(engine(), {max_tokens, {}});
    advance(session, ids);
    return session;
  }
  FrozenSession frozen(SessionId session) {
    auto result = engine().freeze(session);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    return result.is_ok() ? std::move(*result) : FrozenSession{};
  }
  FrozenSession copied(SessionId session) {
    FrozenSession copy = frozen(session);
    copy_kv(&copy);
    return copy;
  }

  std::shared_ptr<LoadedModel> model_;
  Opened opened_;
};

TEST_F(Freeze, HandsOutNothingPastTheTokens) {
  // The only block is used by another session first, to its end.
  EngineOptions options;
  options.kv_budget_bytes = engine().stats().kv_block_bytes;
  reopen(options);
  const FrozenSession clean = copied(session_of(counting(3, 5)));
  reopen(options);
  ASSERT_TRUE(engine().close(session_of(counting(100, 32))).is_ok());
  const SessionId session = session_of(counting(3, 5));
  EXPECT_EQ(first_difference(clean, frozen(session)), "");
  ASSERT_TRUE(engine().truncate(session, 4).is_ok());
  const FrozenSession cut = frozen(session);
  ASSERT_EQ(cut.kv_blocks.size(), 1u);
  EXPECT_NE(std::memcmp(cut.kv_blocks[0].data(), clean.kv_blocks[0].data(), cut.kv_blocks[0].size()), 0)
      << "the fifth token's bytes are gone";
  EXPECT_FALSE(cut.has_logits);
}

TEST_F(Freeze, StaysAsItWasWhateverBecomesOfItsSession) {
  const SessionId session = session_of(counting(1, 70));
  const FrozenSession kept = frozen(session);
  const FrozenSession copy = copied(session);
  ASSERT_EQ(kept.kv_blocks.size(), 3u);
  advance(session, counting(50, 4));
  EXPECT_EQ(first_difference(kept, copy), "") << "appended";
  ASSERT_TRUE(engine().truncate(session, 10).is_ok());
  advance(session, counting(200, 90));
  EXPECT_EQ(first_difference(kept, copy), "") << "cut and written again";
  ASSERT_TRUE(engine().close(session).is_ok());
  ASSERT_TRUE(engine().close(session_of(counting(9, 128))).is_ok());
  EXPECT_EQ(first_difference(kept, copy), "") << "closed, and its blocks could be taken";
  opened_.engine.reset();
  EXPECT_EQ(first_difference(kept, copy), "") << "without its engine";
}

TEST_F(Freeze, SharesFullBlocksUntilItGoes) {
  const SessionId session = session_of(counting(1, 70));
  EXPECT_EQ(blocks(), 3);
  {
    FrozenSession first = frozen(session);
    const FrozenSession second = first;
    EXPECT_EQ(blocks(), 3) << "freezing takes no block";
    ASSERT_TRUE(engine().close(session).is_ok());
    EXPECT_EQ(blocks(), 2) << "the full ones are kept";
    copy_kv(&first);
    EXPECT_EQ(blocks(), 2) << "the other copy keeps them";
  }
  EXPECT_EQ(blocks(), 0);
}

TEST_F(Freeze, OfAForkDisturbsNoOther) {
  const SessionId parent = session_of(counting(1, 40));
  const SessionId child = *engine().fork(parent, 0);
  EXPECT_EQ(blocks(), 2);
  const FrozenSession before = copied(parent);
  FrozenSession of_child = frozen(child);
  EXPECT_EQ(first_difference(before, of_child), "");
  EXPECT_EQ(blocks(), 2);
  advance(child, counting(60, 8));
  EXPECT_EQ(first_difference(before, frozen(parent)), "");
  const SessionId again = *engine().thaw(of_child);
  advance(again, counting(60, 8));
  EXPECT_EQ(first_difference(frozen(child), frozen(again)), "");
  advance(parent, counting(90, 8));
  EXPECT_NE(first_difference(frozen(child), frozen(parent)), "");
  of_child = {};
  for (SessionId id : {parent, child, again}) ASSERT_TRUE(engine().close(id).is_ok());
  EXPECT_EQ(blocks(), 0);
}

TEST_F(Freeze, AFullContextStaysFull) {
  const SessionId session = session_of(counting(1, 64), 64);
  const FrozenSession whole = frozen(session);
  const int64_t rows = engine().stats().rows_computed;
  const SessionId again = *engine().thaw(whole);
  EXPECT_EQ(engine().stats().rows_computed, rows);
  EXPECT_EQ(*engine().sample(session), *engine().sample(again));
  const std::vector<int32_t> one{1};
  expect_error(engine().append(again, one), Code::kOutOfRange, "at most 64 tokens");
  ASSERT_TRUE(engine().truncate(again, 60).is_ok());
  ASSERT_TRUE(engine().truncate(session, 60).is_ok());
  advance(again, counting(5, 4));
  advance(session, counting(5, 4));
  EXPECT_EQ(first_difference(frozen(session), frozen(again)), "");
}

TEST_F(Freeze, RefusesWhatItCannotFreeze) {
  expect_error(engine().freeze(999).status(), Code::kNotFound, "no session 999");
  const SessionId session = open_session(engine());
  ASSERT_TRUE(engine().append(session, counting(1, 3)).is_ok());
  Status inside;
  const LogitsSink sink = [&](int64_t, std::span<const float>) {
    inside = engine().freeze(session).status();
  };
  ASSERT_TRUE(engine().step(session, &sink).is_ok());
  expect_error(inside, Code::kFailedPrecondition, "in use");
  const FrozenSession good = frozen(session);

  EngineOptions debug;
  debug.debug_f32_activations = true;
  const Opened opened = open(model_, {"ref", 1, debug});
  const SessionId other = open_session(*opened.engine);
  expect_error(opened.engine->freeze(other).status(), Code::kFailedPrecondition, "debug arithmetic");
  expect_error(opened.engine->thaw(good).status(), Code::kFailedPrecondition, "debug arithmetic");
}

TEST_F(Freeze, ThawAsksForRoomFirst) {
  const SessionId session = session_of(counting(1, 70));
  FrozenSession three = copied(session);
  EngineOptions options;
  options.kv_budget_bytes = 3 * engine().stats().kv_block_bytes;
  reopen(options);
  const SessionId first = session_of(counting(1, 5));
  expect_error(engine().thaw(three).status(), Code::kResourceExhausted, "KV budget");
  EXPECT_EQ(blocks(), 1);
  ASSERT_TRUE(engine().close(first).is_ok());
  EXPECT_TRUE(engine().thaw(three).is_ok());
}

TEST_F(Freeze, ThawCleansWhatIsPastTheTokens) {
  FrozenSession dirty = copied(session_of(counting(1, 5)));
  const FrozenSession clean = dirty;
  copy_kv(&dirty);
  const auto bytes = std::static_pointer_cast<const std::vector<uint8_t>>(dirty.kv_owner);
  auto& writable = const_cast<std::vector<uint8_t>&>(*bytes);
  writable[62] = 0x5a;     // K of layer 0, first head and dim, token 31
  writable.back() = 0x5a;  // padding
  EXPECT_NE(first_difference(clean, dirty), "");
  EXPECT_EQ(first_difference(clean, frozen(*engine().thaw(dirty))), "");
}

using Change = std::function<void(FrozenSession&)>;

// One change at a time to a good frozen session: refused in the words given, and nothing has happened.
class Refusals : public Freeze {
 protected:
  void expect_refused(const Change& change, Code code, const std::string& words) {
    if (session_ == 0) session_ = session_of(counting(1, 70));
    const FrozenSession good = copied(session_);
    FrozenSession bad = good;
    change(bad);
    const EngineStats before = engine().stats();
    expect_error(engine().thaw(bad).status(), code, words);
    EXPECT_EQ(engine().stats().kv_blocks_in_use, before.kv_blocks_in_use) << words;
    EXPECT_EQ(engine().stats().rows_computed, before.rows_computed) << words;
    EXPECT_EQ(first_difference(good, frozen(session_)), "") << words;
    const auto thawed = engine().thaw(good);
    ASSERT_TRUE(thawed.is_ok()) << thawed.status().message();
    EXPECT_TRUE(engine().close(*thawed).is_ok());
  }
  SessionId session_ = 0;
};

TEST_F(Refusals, NameTheFieldOfIdentityAndBothValues) {
  const SessionIdentity here = engine().identity(128);
  struct Field {
    const char* name;
    std::string SessionIdentity::* value;
  };
  for (const Field& f :
       {Field{"model fingerprint", &SessionIdentity::model_fingerprint},
        Field{"numerics id", &SessionIdentity::numerics_id}, Field{"KV format", &SessionIdentity::kv_format},
        Field{"KV geometry", &SessionIdentity::kv_geometry}, Field{"rope", &SessionIdentity::rope}}) {
    EXPECT_FALSE((here.*f.value).empty()) << f.name;
    expect_refused([&](FrozenSession& s) { s.identity.*f.value = "another"; }, Code::kFailedPrecondition,
                   std::string(f.name) + " is \"another\", here it is \"" + here.*f.value + "\"");
  }
}

TEST_F(Refusals, OfSizesAndIds) {
  constexpr Code kBad = Code::kInvalidArgument;
  expect_refused([](FrozenSession& s) { s.tokens[69] = 320; }, kBad, "token 69 has the id 320");
  expect_refused([](FrozenSession& s) { s.tokens[0] = -1; }, kBad, "token 0 has the id -1");
  expect_refused([](FrozenSession& s) { s.tokens.resize(129); }, kBad,
                 "129 tokens, more than its max_tokens");
  expect_refused([](FrozenSession& s) { s.max_tokens = 69; }, kBad, "max_tokens, 69");
  expect_refused([](FrozenSession& s) { s.max_tokens = 0; }, kBad, "max_tokens is 0");
  expect_refused([](FrozenSession& s) { s.max_tokens = int64_t{1} << 60; }, kBad, "max_tokens is 11529");
  expect_refused([](FrozenSession& s) { s.computed = 71; }, kBad, "computed is 71 of 70");
  expect_refused([](FrozenSession& s) { s.computed = -1; }, kBad, "computed is -1");
  expect_refused([](FrozenSession& s) { s.computed = 69; }, kBad, "69 of 70 tokens are computed");
  expect_refused([](FrozenSession& s) { s.tokens.clear(), s.computed = 0, s.kv_blocks.clear(); }, kBad,
                 "0 of 0 tokens are computed");
  expect_refused([](FrozenSession& s) { s.logits = std::vector<float>(319); }, kBad,
                 "319 logits, expected 320");
  expect_refused([](FrozenSession& s) { s.has_logits = false; }, kBad, "320 logits, expected 0");
  expect_refused([](FrozenSession& s) { s.kv_blocks.pop_back(); }, kBad, "2 KV blocks, 70 tokens take 3");
  expect_refused([](FrozenSession& s) { s.kv_blocks.push_back(s.kv_blocks[0]); }, kBad, "4 KV blocks");
  expect_refused([](FrozenSession& s) { s.kv_blocks[1] = s.kv_blocks[1].first(8); }, kBad,
                 "KV block 1 has 8 bytes");
  expect_refused([](FrozenSession& s) { s.block_bytes += 1; }, kBad, "block_bytes is");
  expect_refused([](FrozenSession& s) { s.sampling.temperature = std::numeric_limits<float>::quiet_NaN(); },
                 kBad, "temperature");
  expect_refused([](FrozenSession& s) { s.sampling.top_p = 2; }, kBad, "top_p");
  expect_refused([](FrozenSession& s) { s.sampling.logit_bias = {{320, 1.0f}}; }, kBad, "logit_bias");
}

TEST_F(Freeze, AnotherKvTypeIsAnotherFormatAndGeometry) {
  const FrozenSession f16 = copied(session_of(counting(1, 5)));
  EngineOptions options;
  options.kv_dtype = DType::kF32;
  reopen(options);
  expect_error(engine().thaw(f16).status(), Code::kFailedPrecondition,
               "KV format is \"kv-f16\", here it is \"kv-f32\"");
  EXPECT_EQ(blocks(), 0);
}

TEST_F(Freeze, ContextIsPartOfIdentityWhereRopeDependsOnIt) {
  const FrozenSession plain = copied(session_of(counting(1, 5), 64));
  EXPECT_EQ(engine().identity(64).rope, engine().identity(128).rope);

  model_->config.rope.scaling = model::RopeScaling::kDynamic;
  model_->config.rope.factor = 4;
  model_->config.rope.original_context = 32;
  model_->config.rope_identity = model::identity(model_->config.rope);
  reopen({});
  expect_error(engine().thaw(plain).status(), Code::kFailedPrecondition, "rope");
  FrozenSession stretched = copied(session_of(counting(1, 5), 64));
  EXPECT_NE(stretched.identity.rope.find("context=64"), std::string::npos) << stretched.identity.rope;
  EXPECT_TRUE(engine().thaw(stretched).is_ok());
  stretched.max_tokens = 128;
  expect_error(engine().thaw(stretched).status(), Code::kFailedPrecondition, "context=128");
}

}  // namespace
}  // namespace driftwood::engine::testing
