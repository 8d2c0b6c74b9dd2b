#include "peaks/thread_counts.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace driftwood::peaks {
namespace {

using Counts = std::vector<int>;

Result<Counts> counts(std::initializer_list<const char*> arguments, int cores = 4, int processors = 8) {
  return thread_counts(std::span(arguments.begin(), arguments.size()), cores, processors);
}

TEST(ThreadCounts, OneAndAllCoresByDefault) {
  EXPECT_EQ(*counts({}), (Counts{1, 4}));
  EXPECT_EQ(*counts({}, 1, 2), (Counts{1}));
}

TEST(ThreadCounts, EachOnceInTheOrderGiven) {
  EXPECT_EQ(*counts({"8", "1"}), (Counts{8, 1}));
  EXPECT_EQ(*counts({"2", "2", "1", "2"}), (Counts{2, 1}));  // keys of JSON must not repeat
}

TEST(ThreadCounts, RefusesWhatIsNoNumberByItsText) {
  for (const char* text : {"0", "-1", "x", "", "2x", " 2", "1.5", "99999999999999999999"}) {
    const auto refused = counts({"1", text});
    ASSERT_FALSE(refused.is_ok()) << text;
    EXPECT_NE(refused.status().message().find("'" + std::string(text) + "'"), std::string::npos) << text;
  }
}

TEST(ThreadCounts, RefusesMoreThanTheProcessorsAndSaysHowManyThereAre) {
  EXPECT_TRUE(counts({"8"}).is_ok());
  EXPECT_NE(
      counts({"9"}).status().message().find("'9' is no number of threads; this process may use 8 processors"),
      std::string::npos);
  EXPECT_NE(counts({"2"}, 1, 1).status().message().find("1 processor"), std::string::npos);
}

}  // namespace
}  // namespace driftwood::peaks
