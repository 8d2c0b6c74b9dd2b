#include <gtest/gtest.h>

#include "base/rng.h"
#include "text/tokenizer.h"

namespace driftwood::text {
namespace {

std::string assembled(std::string_view bytes) {
  Utf8Assembler assembler;
  std::string text = assembler.push(bytes);
  return text + assembler.finish();
}

TEST(Utf8Assembler, HoldsBackHalfCharacters) {
  Utf8Assembler assembler;
  EXPECT_EQ(assembler.push("a\xF0\x9F"), "a");
  EXPECT_EQ(assembler.push("\x98"), "");
  EXPECT_EQ(assembler.push("\x8A!"), "\xF0\x9F\x98\x8A!");
  EXPECT_EQ(assembler.push("\xC3"), "");
  EXPECT_EQ(assembler.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(assembler.finish(), "");
  EXPECT_EQ(assembler.push("\xA9"), "\xEF\xBF\xBD");  // nothing is left of what was before finish()
}

// One U+FFFD for each maximal subpart: the examples of Unicode 15, section 3.9, tables 3-8 to 3-11.
TEST(Utf8Assembler, ReplacesAsUnicodeRecommends) {
  const auto replaced = [](std::string_view pattern) {
    std::string out;
    for (char c : pattern) out += c == '?' ? std::string("\xEF\xBF\xBD") : std::string(1, c);
    return out;
  };
  EXPECT_EQ(assembled("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), replaced("????????A"));
  EXPECT_EQ(assembled("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), replaced("????????A"));
  EXPECT_EQ(assembled("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), replaced("?????A??B"));
  EXPECT_EQ(assembled("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), replaced("????A"));
}

TEST(Utf8Assembler, AnySplitGivesTheSameText) {
  const std::string_view alphabet[] = {"a",        "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x8A",
                                       "\xF0\x9F", "\x80",     "\xFF",         "\xE2\x82",
                                       "\xED\xA0", "\xF4\x90", "\xC0",         "\n"};
  for (uint64_t round = 0; round < 2000; ++round) {
    std::string bytes;
    const uint64_t pieces = random_u64(round, 0, 0, 0) % 12;
    for (uint64_t i = 0; i < pieces; ++i) bytes += alphabet[random_u64(round, 1, i, 0) % std::size(alphabet)];
    const std::string once = assembled(bytes);
    ASSERT_EQ(assembled(once), once);  // what comes out is valid
    for (uint64_t split = 0; split < 4; ++split) {
      Utf8Assembler assembler;
      std::string text;
      for (size_t at = 0; at < bytes.size();) {
        const size_t length = 1 + random_u64(round, 2 + split, at, 0) % (split + 1);
        text += assembler.push(std::string_view(bytes).substr(at, length));
        ASSERT_EQ(once.compare(0, text.size(), text), 0);
        at += length;
      }
      ASSERT_EQ(text + assembler.finish(), once);
    }
  }
}

}  // namespace
}  // namespace driftwood::text
