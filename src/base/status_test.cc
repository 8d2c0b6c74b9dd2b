#include "base/status.h"

#include <set>

#include <gtest/gtest.h>

#include "base/code_table.h"

namespace driftwood {
namespace {

TEST(CodeTable, EveryCodeHasOneRowAndDistinctGuestNumbers) {
  ASSERT_EQ(code_table().size(), static_cast<size_t>(kCodeCount));
  std::set<int> guest_numbers;
  for (int i = 0; i < kCodeCount; ++i) {
    const CodeRow& row = code_row(static_cast<Code>(i));
    EXPECT_EQ(static_cast<int>(row.code), i);
    EXPECT_EQ(row.guest_error, -i);
    EXPECT_NE(code_name(row.code), "");
    EXPECT_TRUE(guest_numbers.insert(row.guest_error).second);
    EXPECT_GE(row.http_status, i == 0 ? 200 : 400);
    EXPECT_EQ(row.exit_code == 0, i == 0);
  }
}

Result<int> half_of(int x) {
  if (x % 2 != 0) return invalid_argument("x = " + std::to_string(x) + " is odd");
  return x / 2;
}

Result<int> quarter_of(int x) {
  DW_ASSIGN_OR_RETURN(const int half, half_of(x));
  DW_ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return quarter;
}

TEST(Status, ErrorsTravelWithTheirContext) {
  ASSERT_TRUE(quarter_of(8).is_ok());
  EXPECT_EQ(*quarter_of(8), 2);
  const Status status = quarter_of(6).status().with_context("quarter");
  EXPECT_EQ(status.to_string(), "invalid_argument: quarter: x = 3 is odd");
  EXPECT_TRUE(Status::ok().with_context("any").is_ok());
}

}  // namespace
}  // namespace driftwood
