#include "snapshot/contents_check.h"

#include <gtest/gtest.h>

namespace driftwood::snapshot {
namespace {

constexpr uint8_t kZeros[4096] = {};

Status named(const std::string& name) { return data_loss(name); }

TEST(ContentsCheck, WholeBytesPass) {
  const std::vector<uint8_t> bytes(100'000, 7);
  for (const int threads : {0, 1, 3}) {
    ContentsCheck check;
    check.expect_digest(bytes, blake3(ByteSpan(bytes)), [](const Digest&) { return named("bytes"); });
    check.expect_zeros(kZeros, [](uint64_t) { return named("zeros"); });
    check.expect_zeros({}, [](uint64_t) { return named("nothing"); });
    EXPECT_TRUE(check.run(threads).is_ok());
  }
  EXPECT_TRUE(ContentsCheck().run(2).is_ok());
}

TEST(ContentsCheck, TheFirstFaultAddedIsTold) {
  std::vector<uint8_t> zeros(1000);
  zeros[577] = 1;
  const Digest wanted{};
  ContentsCheck check;
  check.expect_zeros(kZeros, [](uint64_t) { return named("good"); });
  check.expect_zeros(zeros, [](uint64_t at) { return named("zeros " + std::to_string(at)); });
  check.expect_digest(kZeros, wanted, [](const Digest& found) { return named(to_hex(found)); });
  const Status status = check.run(2);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_EQ(status.message(), "zeros 577");
}

TEST(ContentsCheck, ChecksThatRunTogetherKeepTheirOwnStatus) {
  std::vector<ContentsCheck> checks(3);
  for (int i = 0; i < 50; ++i) {
    for (size_t c = 0; c < checks.size(); ++c) {
      const Digest digest = c == 1 && i > 30 ? Digest{} : blake3(ByteSpan(kZeros));
      checks[c].expect_digest(kZeros, digest, [i](const Digest& found) {
        EXPECT_EQ(found, blake3_of_zeros(sizeof(kZeros)));
        return named(std::to_string(i));
      });
    }
  }
  ContentsCheck::run(checks, 2);
  EXPECT_TRUE(checks[0].status().is_ok());
  EXPECT_EQ(checks[1].status().message(), "31");
  EXPECT_TRUE(checks[2].status().is_ok());
}

TEST(Digest, OfZeros) {
  for (const uint64_t count : {0, 1, 65'535, 65'536, 65'537, 300'000}) {
    const std::vector<uint8_t> zeros(count);
    EXPECT_EQ(blake3_of_zeros(count), blake3(ByteSpan(zeros))) << count;
    EXPECT_TRUE(is_zero(zeros));
  }
  uint8_t bytes[3] = {0, 0, 1};
  EXPECT_FALSE(is_zero(bytes));
  EXPECT_TRUE(is_zero({bytes, 2}));
}

}  // namespace
}  // namespace driftwood::snapshot
