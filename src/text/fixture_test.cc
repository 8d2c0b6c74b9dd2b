// The default model's tokenizer and template against answers that another program gave.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "text/tokenizer.h"

namespace driftwood::text {
namespace {

using nlohmann::ordered_json;

class Fixture : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* model = std::getenv("DRIFTWOOD_SMOLLM2");
    if (model == nullptr)
      GTEST_SKIP() << "no default model: DRIFTWOOD_SMOLLM2 is not set (make test sets it)";
    const char* folder = std::getenv("DRIFTWOOD_FIXTURES");
    const std::string path = std::string(folder ? folder : DW_DEFAULT_FIXTURES) + "/smollm2.text.json";
    std::ifstream file(path);
    if (!file) GTEST_SKIP() << "no fixture at " << path << ": DRIFTWOOD_FIXTURES names the folder";
    cases_ = ordered_json::parse(file, nullptr, false);
    ASSERT_TRUE(cases_.is_object());
    auto opened = format::open_checkpoint(model);
    ASSERT_TRUE(opened.is_ok()) << opened.status().to_string();
    checkpoint_ = *opened;
    auto made = Tokenizer::from_checkpoint(*checkpoint_);
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    tokenizer_ = *made;
  }

  ordered_json cases_;
  std::shared_ptr<const format::Checkpoint> checkpoint_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(Fixture, TokenizesAndComesBack) {
  ASSERT_EQ(cases_["tokenize"].size(), 488u);
  for (const auto& one : cases_["tokenize"]) {
    const std::string text = one["text"];
    const EncodeOptions options{.add_special = one["add_special"], .parse_special = one["parse_special"]};
    auto ids = tokenizer_->encode(text, options);
    ASSERT_TRUE(ids.is_ok()) << ids.status().to_string();
    EXPECT_EQ(*ids, one["ids"].get<std::vector<int32_t>>()) << text;
    auto back = tokenizer_->decode(ids->data(), ids->size(), /*show_special=*/true);
    ASSERT_TRUE(back.is_ok()) << back.status().to_string();
    EXPECT_EQ(*back, text);
    std::string pieces;
    for (int32_t id : *ids) {
      auto bytes = tokenizer_->token_bytes(id);
      ASSERT_TRUE(bytes.is_ok()) << bytes.status().to_string();
      pieces += *bytes;
    }
    EXPECT_EQ(pieces, text);
  }
}

TEST_F(Fixture, RendersChats) {
  auto made = ChatTemplate::from_checkpoint(*checkpoint_);
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  ASSERT_FALSE(cases_["chat"].empty());
  for (const auto& one : cases_["chat"]) {
    auto prompt = (*made)->render(one["messages"].dump(), /*add_generation_prompt=*/true, "");
    ASSERT_TRUE(prompt.is_ok()) << prompt.status().to_string();
    EXPECT_EQ(*prompt, one["prompt"].get<std::string>());
  }
}

TEST_F(Fixture, KnowsItsSpecialTokens) {
  EXPECT_EQ(tokenizer_->vocab_size(), 49152);
  const int32_t end = tokenizer_->token_id("<|im_end|>").value_or(-1);
  EXPECT_EQ(end, 2);
  ASSERT_FALSE(tokenizer_->end_tokens().empty());
  EXPECT_EQ(tokenizer_->end_tokens().front(), end);
  EXPECT_EQ(tokenizer_->end_tokens(), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(tokenizer_->bos(), 1);
  const std::vector<int32_t> ids = {end, 216, end};
  EXPECT_EQ(*tokenizer_->decode(ids.data(), ids.size(), false), " ");
  EXPECT_EQ(*tokenizer_->decode(ids.data(), ids.size(), true), "<|im_end|> <|im_end|>");
}

}  // namespace
}  // namespace driftwood::text
