#include "base/sha256.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace driftwood {
namespace {

std::string digest_of(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hex(hash.finish());
}

TEST(Sha256, NistVectors) {
  EXPECT_EQ(digest_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(
      digest_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
                "lmnopqrsmnopqrstnopqrstu"),
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(digest_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
  std::vector<uint8_t> data(1000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(random_u64(1, 2, i, 0));
  for (size_t length = 0; length < data.size(); length += 7) {
    const std::span<const uint8_t> whole(data.data(), length);
    Sha256 pieces;
    for (size_t at = 0, step = 1; at < length; at += step, step = step % 130 + 13) {
      pieces.update(whole.subspan(at, std::min(step, length - at)));
    }
    ASSERT_EQ(hex(sha256(whole)), hex(pieces.finish())) << length;
  }
}

TEST(Sha256, CompressionInUseMatchesThePortableOne) {
  std::vector<uint8_t> data(64 * 37);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(random_u64(3, 4, i, 0));
  uint32_t a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  uint32_t b[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  sha256_compress_portable(a, data.data(), 37);
  sha256_compress_in_use()(b, data.data(), 37);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(a[i], b[i]) << i;
}

}  // namespace
}  // namespace driftwood
