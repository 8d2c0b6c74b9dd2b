// Test support: small snapshots with owned bytes, edited headers, and a folder that goes away with the test.
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "snapshot/container.h"
#include "snapshot/header.h"
#include "snapshot/reader.h"
#include "snapshot/writer.h"

namespace driftwood::snapshot {

using Bytes = std::vector<uint8_t>;

// Where the system has such a folder: for tests that flush thousands of files and never cut the power.
inline constexpr bool kInMemory = true;

class TempFolder {
 public:
  explicit TempFolder(bool in_memory = false) {
    const bool shm = in_memory && ::access("/dev/shm", W_OK | X_OK) == 0;
    const std::filesystem::path base = shm ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string pattern = (base / "dw_snapshot_XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

inline Bytes read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

inline void write_bytes(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(out.good()) << path;
}

// Bytes without zeros and without a short period.
inline Bytes pattern(size_t size, uint32_t seed) {
  Bytes bytes(size);
  uint32_t x = seed * 2654435761U + 1;
  for (uint8_t& b : bytes) {
    x = x * 1664525U + 1013904223U;
    b = static_cast<uint8_t>(x >> 24 | 1);
  }
  return bytes;
}

inline Identity test_identity() {
  return {std::string(64, 'a'), std::string(64, 'b'), "1", "portable-1", "f16", "32x2x8", "theta=10000"};
}

// Three sections: linear memory in pieces, globals with padding by rows, an odd tensor with flat padding and
// an empty one.
struct TestSnapshot {
  Bytes memory = pattern(2 * kUnitBytes, 1);
  Bytes globals = pattern(3 * 8, 2);
  Bytes odd = pattern(size_t{5} * 3 * 4, 3);
  SnapshotContents contents;

  TestSnapshot() {
    contents.identity = test_identity();
    contents.origin = {
        std::string(64, 'c'), 1'700'000'000'000'000'000ULL, {{"made by", "a test: \"\xC3\xA4\""}}};
    SectionTensor pages{{"pages", DType::kU8, {2, 65536}, "[page][byte]", 16384}, {memory}};
    SectionTensor values{{"values", DType::kU64, {3}, "[global]"}, {globals}};
    SectionTensor table{{"table", DType::kI32, {5, 3}, "[row][column]"}, {odd}};
    SectionTensor none{{"none", DType::kF32, {0, 4}, "[entry][value]"}, {}};
    contents.sections = {{{"memory", "linear_memory", {{"pages", "2"}}}, {pages}},
                         {{"globals", "wasm_globals", {}}, {values, table}},
                         {{"mailbox", "messages", {}}, {none}}};
  }

  Bytes write() const {
    const TempFolder folder;
    const auto written = write_snapshot(folder / "s", contents);
    EXPECT_TRUE(written.is_ok()) << written.status().message();
    return read_bytes(folder / "s");
  }
};

inline uint64_t data_start(const Bytes& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  return length + 8;
}

// Puts the right hash into a header (of a file whose header was changed).
inline void rehash(Bytes* file) {
  const std::string hex = to_hex(header_digest(ByteSpan(*file).first(data_start(*file))));
  std::memcpy(file->data() + 8 + kHeaderStart.size() + 1 + kHashStart.size(), hex.data(), hex.size());
}

// The file with the first `from` in its header replaced and the hash made right. The text must not outgrow
// its padding.
inline Bytes edited(const Bytes& file, const std::string& from, const std::string& to) {
  const uint64_t start = data_start(file);
  std::string text(file.begin() + 8, file.begin() + static_cast<std::ptrdiff_t>(start));
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  text.resize(start - 8, ' ');
  Bytes out = file;
  std::memcpy(out.data() + 8, text.data(), text.size());
  rehash(&out);
  return out;
}

// Opens and verifies in full; the first error of the two.
inline Status check_all(const Bytes& file) {
  const auto snapshot = Snapshot::parse(file, "t");
  if (!snapshot.is_ok()) return snapshot.status();
  return (*snapshot)->verify_contents();
}

inline bool holds(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

}  // namespace driftwood::snapshot
