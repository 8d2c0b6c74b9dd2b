// What a snapshot file suffers on a disk: truncation, growth, flipped bytes. Every fault must be an error.
#include "snapshot/test_snapshots.h"

namespace driftwood::snapshot {
namespace {

TEST(Fault, TruncationAtEvery4KiBIsRefusedOnOpening) {
  const TempFolder folder;
  const std::string path = folder / "s";
  ASSERT_TRUE(write_snapshot(path, TestSnapshot().contents).is_ok());
  const uint64_t whole = std::filesystem::file_size(path);
  ASSERT_TRUE(Snapshot::open(path).is_ok());
  for (uint64_t size = whole - 4096; size + 4096 > 0; size -= 4096) {
    std::filesystem::resize_file(path, size);
    const auto opened = Snapshot::open(path);
    ASSERT_FALSE(opened.is_ok()) << size;
    EXPECT_EQ(opened.status().code(), Code::kDataLoss) << size << ": " << opened.status().message();
    EXPECT_TRUE(holds(opened.status(), path)) << opened.status().message();
    if (size == 0) break;
  }
}

TEST(Fault, TruncationInsideTheFirstPageIsRefused) {
  const Bytes file = TestSnapshot().write();
  for (size_t size = 0; size < 4096; ++size) {
    EXPECT_FALSE(Snapshot::parse(ByteSpan(file).first(size), "t").is_ok()) << size;
  }
}

TEST(Fault, BytesBehindTheEndAreRefused) {
  Bytes file = TestSnapshot().write();
  for (const size_t more : {size_t{1}, size_t{4096}, size_t{65536}}) {
    Bytes longer = file;
    longer.resize(file.size() + more, 0);
    EXPECT_TRUE(holds(check_all(longer), "follow the last tensor")) << check_all(longer).message();
  }
}

TEST(Fault, EveryHeaderByteCounts) {
  Bytes file = TestSnapshot().write();
  const uint64_t start = data_start(file);
  const std::string text(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(start));
  const size_t text_end = text.find_last_not_of(' ') + 1;
  size_t tried = 0;
  // All of the text, and a sample of the padding.
  for (size_t i = 0; i < start; i += i < text_end ? 1 : 211) {
    for (const uint8_t mask : {uint8_t{0x01}, uint8_t{0x80}}) {
      file[i] ^= mask;
      const auto opened = Snapshot::parse(file, "t");
      EXPECT_FALSE(opened.is_ok()) << "byte " << i << " xor " << int{mask};
      file[i] ^= mask;
      ++tried;
    }
  }
  EXPECT_GT(tried, 2 * text_end);
  EXPECT_TRUE(check_all(file).is_ok());
}

struct Span {
  const char* message;
  uint64_t begin;
  uint64_t end;
};

TEST(Fault, EveryByteClassOfTheDataCounts) {
  Bytes file = TestSnapshot().write();
  const auto opened = Snapshot::parse(file, "t");
  ASSERT_TRUE(opened.is_ok());
  const StoredTensor& pages = *(*opened)->find("memory")->find("pages");
  const StoredTensor& values = *(*opened)->find("globals")->find("values");
  const StoredTensor& table = *(*opened)->find("globals")->find("table");
  const uint64_t hashes = pages.piece_hashes_offset;
  const Span spans[] = {
      {"'memory.pages', piece 3", pages.file_offset + 49152, pages.file_offset + 65536},
      {"'memory.pages', piece 7", pages.file_offset + 114688, pages.file_offset + 131072},
      {"'memory.pages.hashes': damaged: its BLAKE3", hashes, hashes + 256},
      {"'memory.pages.hashes': damaged: its padding", hashes + 256, hashes + kUnitBytes},
      {"'globals.values': damaged: its BLAKE3", values.file_offset, values.file_offset + 24},
      {"'globals.values': damaged: its padding", values.file_offset + 24, values.file_offset + kUnitBytes},
      {"'globals.table': damaged: its BLAKE3", table.file_offset, table.file_offset + 60},
      {"'globals.table': damaged: its padding", table.file_offset + 60, table.file_offset + kUnitBytes},
  };
  uint64_t covered = 0;
  for (const Span& span : spans) {
    const uint64_t step = std::max<uint64_t>(1, (span.end - span.begin) / 40);
    for (uint64_t i = span.begin; i < span.end;
         i += i + step < span.end || i + 1 == span.end ? step : span.end - 1 - i) {
      file[i] ^= 0x10;
      // Opening reads no contents, so it still works; only the full check can tell.
      EXPECT_TRUE(Snapshot::parse(file, "t").is_ok());
      const Status status = (*opened)->verify_contents();
      EXPECT_EQ(status.code(), Code::kDataLoss);
      EXPECT_TRUE(holds(status, span.message)) << "byte " << i << ": " << status.message();
      file[i] ^= 0x10;
    }
    covered += span.end - span.begin;
  }
  EXPECT_EQ(covered,
            file.size() - data_start(file) - (2 * kUnitBytes - 32768));  // six of eight pieces left out
  EXPECT_TRUE((*opened)->verify_contents().is_ok());
}

TEST(Fault, OneDamagedTensorLeavesTheOthersVerifiable) {
  Bytes file = TestSnapshot().write();
  const auto opened = Snapshot::parse(file, "t");
  ASSERT_TRUE(opened.is_ok());
  const StoredTensor& values = *(*opened)->find("globals")->find("values");
  file[values.file_offset] ^= 1;
  EXPECT_FALSE((*opened)->verify_tensor(values).is_ok());
  EXPECT_TRUE((*opened)->verify_tensor(*(*opened)->find("memory")->find("pages"), 2).is_ok());
}

}  // namespace
}  // namespace driftwood::snapshot
