// The example actors on real engines: SmolLM2 (DRIFTWOOD_SMOLLM2) and a tiny fixture
// (DRIFTWOOD_FIXTURE_MODELS).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "actor/actors_for_test.h"
#include "actor/solo_guest.h"
#include "base/math.h"

namespace driftwood::actor {
namespace {

using Json = nlohmann::json;

// Null if the environment does not name it.
engine::Engine* smollm2() {
  static const OpenedModel opened = [] {
    const char* path = std::getenv("DRIFTWOOD_SMOLLM2");
    return path == nullptr || *path == 0 ? OpenedModel{} : open_model(path);
  }();
  return opened.engine.get();
}
engine::Engine* tiny() {
  static const OpenedModel opened = open_tiny();
  return opened.engine.get();
}

#define DW_NEEDS(engine)   \
  if ((engine) == nullptr) \
  GTEST_SKIP() << "set DRIFTWOOD_SMOLLM2 and DRIFTWOOD_FIXTURE_MODELS (tools/run_tests.sh)"

// What the session generates without any actor, up to an end token; closes it.
std::vector<int32_t> native_from(engine::Engine& engine, engine::SessionId id, int count) {
  std::vector<int32_t> ids;
  const text::Tokenizer* tokenizer = engine.model().tokenizer.get();
  for (int i = 0; i < count; ++i) {
    EXPECT_TRUE(engine.step(id).is_ok());
    const int32_t token = *engine.sample(id);
    if (tokenizer != nullptr) {
      const auto& ends = tokenizer->end_tokens();
      if (std::find(ends.begin(), ends.end(), token) != ends.end()) break;
    }
    ids.push_back(token);
    EXPECT_TRUE(engine.append(id, {&token, 1}).is_ok());
  }
  EXPECT_TRUE(engine.close(id).is_ok());
  return ids;
}

std::vector<int32_t> native(engine::Engine& engine, const std::vector<int32_t>& prompt, int count,
                            sampler::SamplerParams sampling = {}) {
  const engine::SessionId id = *engine.open({0, sampling});
  EXPECT_TRUE(engine.append(id, prompt).is_ok());
  return native_from(engine, id, count);
}

std::vector<int32_t> chat_prompt(engine::Engine& engine, const Json& messages) {
  const auto text = engine.model().chat_template->render(messages.dump(), true, "");
  EXPECT_TRUE(text.is_ok());
  return *engine.model().tokenizer->encode(*text, {false, true});
}

std::string text_of(engine::Engine& engine, const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += *engine.model().tokenizer->token_bytes(id);
  return text;
}

std::string turn(ActorSystem& system, ActorId id, Outbox& outbox, std::span<const uint8_t> message) {
  const size_t before = outbox.text().size();
  EXPECT_TRUE(system.send(id, message).is_ok());
  const Status status = system.wait_idle(id, kPatience);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return outbox.text().substr(before);
}

TEST(ExampleActors, TokensAndAgentOnATinyModel) {
  DW_NEEDS(tiny());
  const auto system = ActorSystem::create(shared_runtime(), tiny(), &shared_device(), {4});
  const std::vector<int32_t> prompt = {3, 1, 4, 1, 5, 9, 2, 6};
  Outbox greedy, sampled;
  sampler::SamplerParams params;
  params.temperature = 0.8f;
  params.seed = 11;
  const auto a = system->spawn("greedy", guest("tokens"), options_with(greedy, "max_tokens=24"));
  const auto b = system->spawn("sampled", guest("tokens"),
                               options_with(sampled, "max_tokens=24\ntemperature=0.8\nseed=11"));
  ASSERT_TRUE(a.is_ok() && b.is_ok());
  ASSERT_TRUE(system->send(*a, bytes_of(prompt)).is_ok());
  ASSERT_TRUE(system->send(*b, bytes_of(prompt)).is_ok());
  ASSERT_TRUE(system->wait_idle(*a, kPatience).is_ok());
  ASSERT_TRUE(system->wait_idle(*b, kPatience).is_ok());
  EXPECT_EQ(greedy.ids(), native(*tiny(), prompt, 24)) << greedy.log_text();
  EXPECT_EQ(sampled.ids(), native(*tiny(), prompt, 24, params)) << sampled.log_text();

  Outbox agent_box;
  const auto agent =
      system->spawn("agent", guest("agent"),
                    options_with(agent_box, "input=ids\nbranches=3\nmax_tokens=6\ntemperature=0.8\nseed=11"));
  ASSERT_TRUE(agent.is_ok()) << agent.status().message();
  const std::string text = turn(*system, *agent, agent_box, bytes_of(prompt));
  const Json json = Json::parse(text, nullptr, false);
  ASSERT_TRUE(json.is_object()) << text << agent_box.log_text();
  ASSERT_EQ(json["mean_logprob"].size(), 3u);
  const size_t best = json["best"];
  for (const Json& value : json["mean_logprob"])
    EXPECT_LE(value.get<double>(), json["mean_logprob"][best].get<double>());
  const engine::SessionId root = *tiny()->open({0, params});
  ASSERT_TRUE(tiny()->append(root, prompt).is_ok());
  ASSERT_TRUE(tiny()->step(root).is_ok());
  const engine::SessionId fork = *tiny()->fork(root, best + 1);
  ASSERT_TRUE(tiny()->close(root).is_ok());
  EXPECT_EQ(json["tokens"].get<std::vector<int32_t>>(), native_from(*tiny(), fork, 6));
}

TEST(ExampleActors, LogitsScoresAsTheEngineDoes) {
  DW_NEEDS(tiny());
  const auto system = ActorSystem::create(shared_runtime(), tiny(), &shared_device(), {2});
  const std::vector<int32_t> prompt = {3, 1, 4, 1, 5, 9, 2, 6};
  Outbox outbox;
  const auto id = system->spawn("logits", guest("logits"), options_with(outbox, "input=ids"));
  const std::string text = turn(*system, *id, outbox, bytes_of(prompt));
  const Json json = Json::parse(text, nullptr, false);
  ASSERT_TRUE(json.is_object()) << text << outbox.log_text();
  double nll = 0;
  const engine::LogitsSink sink = [&](int64_t position, std::span<const float> row) {
    const auto next = static_cast<size_t>(position) + 1;
    if (next >= prompt.size()) return;
    double max = row[0], sum = 0;
    for (const float x : row) max = std::max<double>(max, x);
    for (const float x : row) sum += exp_f64(x - max);
    nll += max + log_f64(sum) - row[static_cast<size_t>(prompt[next])];
  };
  const engine::SessionId session = *tiny()->open({});
  ASSERT_TRUE(tiny()->append(session, prompt).is_ok());
  ASSERT_TRUE(tiny()->step(session, &sink).is_ok());
  EXPECT_NEAR(json["mean_nll"].get<double>(), nll / 7, 1e-6);
  EXPECT_EQ(json["tokens"], 8);
  EXPECT_EQ(json["next"][0]["id"], *tiny()->sample(session));
  ASSERT_TRUE(tiny()->close(session).is_ok());
}

TEST(ExampleActors, ChatAnswersAsTheModelDoesAndRemembers) {
  DW_NEEDS(smollm2());
  engine::Engine& engine = *smollm2();
  const auto system = ActorSystem::create(shared_runtime(), &engine, &shared_device(), {4});
  Outbox outbox;
  const auto id = system->spawn("chat", guest("chat"), options_with(outbox, "max_tokens=24"));
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  Json messages = Json::array();
  for (const char* question : {"What is the capital of France?", "And of Italy?"}) {
    messages.push_back({{"role", "user"}, {"content", question}});
    const std::string expected = text_of(engine, native(engine, chat_prompt(engine, messages), 24));
    EXPECT_EQ(turn(*system, *id, outbox, bytes_of(std::string_view(question))), expected)
        << outbox.log_text();
    messages.push_back({{"role", "assistant"}, {"content", expected}});
  }
  EXPECT_EQ(outbox.log_text(), "");
}

TEST(ExampleActors, ChatComputesATurnsNewTokensOnly) {
  DW_NEEDS(smollm2());
  engine::Engine& engine = *smollm2();
  const auto system = ActorSystem::create(shared_runtime(), &engine, &shared_device(), {4});
  Outbox outbox;
  const auto id = system->spawn("chat", guest("chat"), options_with(outbox, "max_tokens=16"));
  turn(*system, *id, outbox, bytes_of(std::string_view("Count from one to ten.")));
  const int64_t before = engine.stats().rows_computed;
  turn(*system, *id, outbox, bytes_of(std::string_view("Go on.")));
  EXPECT_LT(engine.stats().rows_computed - before, 50) << "the first turn was computed again";
}

TEST(ExampleActors, ALongChatForgetsItsOldestTurnsAndGoesOn) {
  DW_NEEDS(smollm2());
  const auto system = ActorSystem::create(shared_runtime(), smollm2(), &shared_device(), {4});
  Outbox outbox;
  const auto id = system->spawn("chat", guest("chat"),
                                options_with(outbox, "max_tokens=8\ncontext=96\nsystem=Be brief."));
  for (int i = 0; i < 8; ++i) {
    EXPECT_NE(
        turn(*system, *id, outbox, bytes_of("Tell me fact number " + std::to_string(i) + " about the sea.")),
        "");
  }
  EXPECT_EQ(outbox.log_text(), "");
  EXPECT_EQ(system->status(*id)->sessions, 1);
  std::string endless;
  for (int i = 0; i < 200; ++i) endless += "word ";
  EXPECT_EQ(turn(*system, *id, outbox, bytes_of(endless)), "");
  EXPECT_NE(outbox.log_text().find("longer than"), std::string::npos);
  EXPECT_NE(turn(*system, *id, outbox, bytes_of(std::string_view("Hello"))), "");  // and it still answers
}

TEST(ExampleActors, TwoChatsAtOnceAnswerAsAlone) {
  DW_NEEDS(smollm2());
  const auto system = ActorSystem::create(shared_runtime(), smollm2(), &shared_device(), {4});
  const std::vector<std::string> questions = {"Name a colour.", "Why is the sky blue?"};
  std::vector<std::string> alone;
  for (const std::string& question : questions) {
    Outbox outbox;
    const auto id =
        system->spawn("alone", guest("chat"), options_with(outbox, "max_tokens=20\ntemperature=0.7\nseed=3"));
    alone.push_back(turn(*system, *id, outbox, bytes_of(question)));
    EXPECT_TRUE(system->stop(*id).is_ok());
  }
  Outbox boxes[2];
  ActorId ids[2];
  for (size_t i = 0; i < 2; ++i) {
    ids[i] = *system->spawn("c" + std::to_string(i), guest("chat"),
                            options_with(boxes[i], "max_tokens=20\ntemperature=0.7\nseed=3"));
    ASSERT_TRUE(system->send(ids[i], bytes_of(questions[i])).is_ok());
  }
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(system->wait_idle(ids[i], kPatience).is_ok());
    EXPECT_EQ(boxes[i].text(), alone[i]);
  }
}

TEST(ExampleActors, HelloContinuesItsArgument) {
  DW_NEEDS(smollm2());
  engine::Engine& engine = *smollm2();
  const auto system = ActorSystem::create(shared_runtime(), &engine, &shared_device(), {2});
  Outbox outbox;
  ActorOptions options = options_with(outbox);
  options.wasi.args = {"hello", "The sea is"};
  const auto id = system->spawn("hello", guest("hello"), std::move(options));
  ASSERT_TRUE(system->wait_exit(*id, kPatience).is_ok());
  const auto ids = native(engine, *engine.model().tokenizer->encode("The sea is", {true, false}), 16);
  EXPECT_EQ(outbox.text(), "Hello from hello\nThe sea is" + text_of(engine, ids) + "\n");
}

TEST(ExampleActors, GemmAndProbeFindNoError) {
  const auto system = ActorSystem::create(shared_runtime(), nullptr, &shared_device(), {2});
  Outbox outbox;
  const auto gemm = system->spawn("gemm", guest("gemm"), options_with(outbox));
  ASSERT_TRUE(system->wait_idle(*gemm, kPatience).is_ok());
  const Json json = Json::parse(outbox.text(), nullptr, false);
  ASSERT_TRUE(json.is_object()) << outbox.text() << outbox.log_text();
  EXPECT_EQ(json["errors"], 0);
  EXPECT_EQ(json["elements"], 128 * 128);
}

TEST(ExampleActors, TheProbesBufferIsTheRegionsOwnBytes) {
  auto made = SoloGuest::create(*shared_runtime(), guest("probe"), "probe", {}, nullptr, &shared_device());
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  wasm::Instance& instance = (*made)->instance();
  const auto call = [&](const char* name, std::vector<uint64_t> args) {
    const auto result = instance.call(name, args);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    return static_cast<int64_t>((*result)[0]);
  };
  EXPECT_EQ(call("probe_calls", {1000}), 1000);
  const int64_t offset = call("probe_buffer", {});
  EXPECT_EQ(call("probe_touch", {3}), 4096);
  const uint8_t* buffer = instance.memory().base() + offset;
  EXPECT_EQ(buffer[4096], 3);
  EXPECT_EQ(call("probe_sum", {}), 3 * 4096);
  ASSERT_EQ(call("probe_fill", {40, 33, 1030}), 0);
  ASSERT_GT(call("probe_gemm", {40, 33, 1030}), offset);
  EXPECT_EQ(call("probe_check", {40, 33, 1030}), 0);
}

}  // namespace
}  // namespace driftwood::actor
