// The same bits however a token is computed: in pieces, beside others, by any instruction set and thread
// count, in a fork, after a truncation. Bytes are compared, never tolerances.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/fixture_models_test.h"
#include "os/temporary_folder.h"

namespace driftwood::engine::testing {
namespace {

struct Case {
  std::string path;
  std::vector<int32_t> ids;
};

// Fixture models by name; "smollm2" is the real one, cut to a length that keeps the test short.
Case find_case(const std::string& name) {
  if (name != "smollm2") {
    const std::string path = fixture_model(name);
    if (path.empty()) return {};
    return {path, Golden(path + "/golden.safetensors").ids("input_ids")};
  }
  const std::string answers = fixtures_folder() + "/smollm2.logits.safetensors";
  if (environment("DRIFTWOOD_SMOLLM2").empty() || !std::filesystem::exists(answers)) return {};
  return {environment("DRIFTWOOD_SMOLLM2"), Golden(answers).ids("chat.ids")};
}

std::string fastest() { return available_isas().back(); }

class Invariance : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    case_ = find_case(GetParam());
    if (case_.path.empty()) GTEST_SKIP() << "no files for " << GetParam();
    model_ = load(case_.path);
    ASSERT_NE(model_, nullptr);
    const Opened opened = open(model_, {fastest(), 2, {}});
    whole_ = all_logits(*opened.engine, open_session(*opened.engine), case_.ids);
    ASSERT_FALSE(whole_.empty());
  }

  Case case_;
  std::shared_ptr<LoadedModel> model_;
  std::vector<float> whole_;
};

TEST_P(Invariance, PromptPieces) {
  const Opened opened = open(model_, {fastest(), 2, {}});
  for (int64_t piece : {1, 7, 32}) {
    const auto logits = all_logits(*opened.engine, open_session(*opened.engine), case_.ids, piece);
    EXPECT_TRUE(same_bytes(logits, whole_)) << "pieces of " << piece;
  }
}

TEST_P(Invariance, RowsOfARun) {
  for (int rows : {5, 16}) {
    RunWith setup{fastest(), 2, {}};
    setup.options.max_batch_tokens = rows;
    const Opened opened = open(model_, setup);
    const auto logits = all_logits(*opened.engine, open_session(*opened.engine), case_.ids);
    EXPECT_TRUE(same_bytes(logits, whole_)) << "runs of " << rows;
  }
}

TEST_P(Invariance, ThreadsAndInstructionSets) {
  for (const std::string& isa : available_isas()) {
    // The scalar reference is slow: one thread count is enough for the real model.
    const bool slow = isa == "ref" && std::string(GetParam()) == "smollm2";
    for (int threads : slow ? std::vector<int>{2} : std::vector<int>{1, 2, 4}) {
      const Opened opened = open(model_, {isa, threads, {}});
      const auto logits = all_logits(*opened.engine, open_session(*opened.engine), case_.ids);
      EXPECT_TRUE(same_bytes(logits, whole_)) << isa << ", " << threads << " threads";
    }
  }
}

// Weights that do not fit into memory come from the packed cache in every step.
TEST_P(Invariance, WeightsFromDisk) {
  const auto folder = os::TemporaryFolder::create("dw_from_disk_");
  ASSERT_TRUE(folder.is_ok()) << folder.status().message();
  const int64_t all = model_->weights->packed_bytes();
  for (const int64_t memory : {int64_t{1}, all / 2, all * 9 / 10}) {
    LoadOptions options;
    options.cache_dir = (*folder)->path();
    options.weights_memory_bytes = memory;
    const auto streamed = load_model(case_.path, options);
    ASSERT_TRUE(streamed.is_ok()) << streamed.status().message();
    const Opened opened = open(*streamed, {fastest(), 2, {}});
    EXPECT_GT((*streamed)->weights->residency().streamed_bytes, 0);
    for (const int64_t piece : {0, 7}) {
      const auto logits = all_logits(*opened.engine, open_session(*opened.engine), case_.ids, piece);
      EXPECT_TRUE(same_bytes(logits, whole_)) << memory << " bytes, pieces of " << piece;
    }
    // A second engine on the same model reads the file's mapping.
    const Opened second = open(*streamed, {fastest(), 1, {}});
    const auto logits = all_logits(*second.engine, open_session(*second.engine), case_.ids, 32);
    EXPECT_TRUE(same_bytes(logits, whole_)) << memory << " bytes, second engine";
  }
}

TEST_P(Invariance, BesideOtherSessions) {
  const Opened opened = open(model_, {fastest(), 2, {}});
  Engine& engine = *opened.engine;
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> others;
  for (size_t k = 1; k <= 3; ++k) {
    others.emplace_back([&, k] {
      std::vector<int32_t> ids(case_.ids.rbegin(), case_.ids.rend());
      while (!stop.load()) {
        const SessionId session = open_session(engine);
        for (size_t at = 0; at < ids.size() && !stop.load(); at += k * 3) {
          const size_t count = std::min(k * 3, ids.size() - at);
          failures += !engine.append(session, std::span(ids).subspan(at, count)).is_ok();
          failures += !engine.step(session).is_ok();
        }
        failures += !engine.close(session).is_ok();
      }
    });
  }
  for (int64_t piece : {0, 1}) {
    const SessionId session = open_session(engine);
    EXPECT_TRUE(same_bytes(all_logits(engine, session, case_.ids, piece), whole_)) << "pieces of " << piece;
    EXPECT_TRUE(engine.close(session).is_ok());
  }
  stop.store(true);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(engine.stats().kv_blocks_in_use, 0);
}

TEST_P(Invariance, ForksAndTruncationsGoOnAsIfAlone) {
  const Opened opened = open(model_, {fastest(), 2, {}});
  Engine& engine = *opened.engine;
  const auto vocab = static_cast<size_t>(model_->config.vocab_size);
  const size_t cut = case_.ids.size() / 2 + 3;
  const std::vector<int32_t> front(case_.ids.begin(), case_.ids.begin() + static_cast<int64_t>(cut));
  const std::vector<int32_t> back(case_.ids.begin() + static_cast<int64_t>(cut), case_.ids.end());
  const std::vector<float> expected(whole_.begin() + static_cast<int64_t>(cut * vocab), whole_.end());
  const std::vector<int32_t> other(back.rbegin(), back.rend());

  const SessionId parent = open_session(engine);
  all_logits(engine, parent, front);
  const auto child = engine.fork(parent, 0);
  ASSERT_TRUE(child.is_ok());
  const int64_t rows = engine.stats().rows_computed;
  // The child's logits carry over; the two then write different tokens into what they shared.
  const auto carried = engine.logits(*child);
  ASSERT_TRUE(carried.is_ok());
  EXPECT_EQ(std::memcmp(carried->data(), whole_.data() + (cut - 1) * vocab, vocab * sizeof(float)), 0);
  all_logits(engine, parent, other);
  EXPECT_TRUE(same_bytes(all_logits(engine, *child, back), expected)) << "child";
  ASSERT_TRUE(engine.truncate(parent, static_cast<int64_t>(cut)).is_ok());
  EXPECT_TRUE(same_bytes(all_logits(engine, parent, back), expected)) << "parent, cut back";
  EXPECT_EQ(engine.stats().rows_computed - rows, static_cast<int64_t>(3 * back.size())) << "nothing twice";
  ASSERT_TRUE(engine.close(parent).is_ok());
  ASSERT_TRUE(engine.close(*child).is_ok());
  EXPECT_EQ(engine.stats().kv_blocks_in_use, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Invariance,
                         ::testing::Values("llama3", "llama_bias", "llama_linear", "llama3_mlx4", "smollm2"));

}  // namespace
}  // namespace driftwood::engine::testing
