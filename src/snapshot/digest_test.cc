#include "snapshot/digest.h"

#include <gtest/gtest.h>

#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

// The value of the empty input that BLAKE3's authors publish.
constexpr char kEmpty[] = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

TEST(Digest, KnownValueAndHex) {
  EXPECT_EQ(to_hex(blake3(ByteSpan())), kEmpty);
  EXPECT_EQ(to_hex(blake3(std::span<const ByteSpan>())), kEmpty);
  Digest digest;
  ASSERT_TRUE(from_hex(kEmpty, &digest));
  EXPECT_EQ(digest, blake3(ByteSpan()));
  std::string upper = kEmpty;
  upper[0] = 'A';
  EXPECT_FALSE(from_hex(upper, &digest));
  EXPECT_FALSE(from_hex(std::string(kEmpty) + "00", &digest));
}

TEST(Digest, ChunksAreTheirConcatenation) {
  std::vector<uint8_t> bytes(100'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i >> 3);
  const ByteSpan all = bytes;
  const ByteSpan chunks[] = {all.first(1), all.subspan(1, 70'000), {}, all.subspan(70'001)};
  EXPECT_EQ(blake3(chunks), blake3(all));
  std::vector<DigestJob> jobs(100, DigestJob{chunks});
  run_digest_jobs(jobs, 8);
  for (const DigestJob& job : jobs) EXPECT_EQ(job.digest, blake3(all));
}

TEST(Container, StoredShapeCoversThePadding) {
  const auto shape = [](DType dtype, std::vector<int64_t> s) { return stored_shape(dtype, s); };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape(DType::kU8, {65536}), (Shape{65536}));
  EXPECT_EQ(shape(DType::kU8, {65537}), (Shape{131072}));
  EXPECT_EQ(shape(DType::kF16, {3, 8192}), (Shape{4, 8192}));
  EXPECT_EQ(shape(DType::kF32, {5, 3}), (Shape{16384}));
  EXPECT_EQ(shape(DType::kF64, {}), (Shape{8192}));
  EXPECT_EQ(shape(DType::kF64, {7, 0}), (Shape{7, 0}));
  EXPECT_EQ(shape(DType::kU8, {3, 65536}), (Shape{3, 65536}));
  EXPECT_EQ(shape(DType::kU8, {1, 65535}), (Shape{65536}));
  EXPECT_FALSE(tensor_bytes(DType::kF32, {int64_t{1} << 62}).has_value());
  EXPECT_FALSE(tensor_bytes(DType::kU8, {-1}).has_value());
  EXPECT_FALSE(tensor_bytes(DType::kU8, Shape(9, 1)).has_value());
}

}  // namespace
}  // namespace driftwood::snapshot
