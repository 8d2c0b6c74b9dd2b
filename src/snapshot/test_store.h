// Test support: an actor's state that changes and grows, and stores of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "snapshot/container.h"
#include "snapshot/store.h"
#include "snapshot/test_snapshots.h"

namespace driftwood::snapshot {

// Linear memory in pages of 64 KiB, some of them zero; KV blocks that are not neighbours; a log in pieces of
// 4 KiB with a short last one; globals without pieces.
struct Actor {
  Bytes memory = Bytes(10 * kUnitBytes, 0);
  std::vector<Bytes> blocks;
  Bytes log = pattern(5000, 77);
  Bytes globals = pattern(24, 5);
  std::string parent;
  uint64_t created_ns = 1;
  std::map<std::string, std::vector<Digest>> known;

  explicit Actor(uint32_t seed = 1) {
    for (const size_t page : {0, 1, 2, 5, 6}) set_page(page, seed * 100 + static_cast<uint32_t>(page));
    for (uint32_t i = 0; i < 6; ++i) blocks.push_back(pattern(kUnitBytes, seed * 1000 + i));
  }
  void set_page(size_t page, uint32_t seed) {
    const Bytes bytes = pattern(kUnitBytes, seed);
    std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(page * kUnitBytes));
  }
  std::vector<Digest> known_of(const std::string& tensor) const {
    const auto found = known.find(tensor);
    return found == known.end() ? std::vector<Digest>() : found->second;
  }
  SnapshotContents contents() const {
    SnapshotContents c;
    c.identity = test_identity();
    c.origin = {parent, created_ns, {{"made by", "a test"}}};
    const auto pages = static_cast<int64_t>(memory.size() / kUnitBytes);
    SectionTensor m{{"pages", DType::kU8, {pages, 65536}, "[page][byte]", kUnitBytes},
                    {memory},
                    known_of("memory.pages")};
    SectionTensor kv{
        {"blocks", DType::kF16, {static_cast<int64_t>(blocks.size()), 32768}, "[block][value]", kUnitBytes},
        {},
        known_of("session.0.blocks")};
    for (const Bytes& block : blocks) kv.chunks.push_back(block);
    SectionTensor l{{"text", DType::kU8, {static_cast<int64_t>(log.size())}, "[byte]", 4096},
                    {log},
                    known_of("log.text")};
    SectionTensor g{{"values", DType::kU64, {3}, "[global]"}, {globals}, {}};
    SectionTensor none{{"none", DType::kF32, {0, 4}, "[entry][value]", 4096}, {}, {}};
    c.sections = {{{"memory", "linear_memory", {{"pages", "10"}}}, {m}},
                  {{"session.0", "session", {{"layers", "1"}}}, {kv}},
                  {{"log", "log", {}}, {l, none}},
                  {{"globals", "wasm_globals", {}}, {g}}};
    return c;
  }
};

inline std::unique_ptr<Store> open_store(const std::string& path, bool read_only = false) {
  auto store = Store::open(path, {!read_only, read_only, 2});
  EXPECT_TRUE(store.is_ok()) << store.status().message();
  return store.is_ok() ? std::move(*store) : nullptr;
}

inline Bytes joined(const std::vector<ByteSpan>& chunks) {
  Bytes bytes;
  for (const ByteSpan chunk : chunks) bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  return bytes;
}

// What a mapper of the pieces would see.
inline Bytes mapped_bytes(const StoredSnapshot& snapshot, const StoredTensor& tensor) {
  Bytes bytes;
  for (const region::FileImage& image : snapshot.pieces(tensor)) {
    EXPECT_EQ(image.offset % region::kImageAlignment, 0U);
    EXPECT_EQ(image.length % region::os_page_bytes(), 0U);
    const size_t begin = bytes.size();
    bytes.resize(begin + image.length, 0);
    if (image.fd >= 0) {
      EXPECT_EQ(::pread(image.fd, bytes.data() + begin, image.length, static_cast<off_t>(image.offset)),
                static_cast<ssize_t>(image.length));
    }
  }
  return bytes;
}

// Every description and every byte, by both ways of reading.
inline void expect_equal(const StoredSnapshot& snapshot, const SnapshotContents& contents) {
  EXPECT_EQ(snapshot.origin().parent, contents.origin.parent);
  EXPECT_EQ(snapshot.origin().created_ns, contents.origin.created_ns);
  EXPECT_EQ(snapshot.identity().model_fingerprint, contents.identity.model_fingerprint);
  ASSERT_EQ(snapshot.sections().size(), contents.sections.size());
  for (size_t s = 0; s < contents.sections.size(); ++s) {
    const StoredSection& stored = snapshot.sections()[s];
    const Section& section = contents.sections[s];
    EXPECT_EQ(stored.name, section.name);
    EXPECT_EQ(stored.kind, section.kind);
    EXPECT_EQ(stored.attributes, section.attributes);
    EXPECT_EQ(snapshot.find(section.name), &stored);
    ASSERT_EQ(stored.tensors.size(), section.tensors.size());
    for (size_t t = 0; t < section.tensors.size(); ++t) {
      const StoredTensor& found = stored.tensors[t];
      const SectionTensor& wanted = section.tensors[t];
      EXPECT_EQ(found.name, wanted.name);
      EXPECT_EQ(found.dtype, wanted.dtype);
      EXPECT_EQ(found.shape, wanted.shape);
      EXPECT_EQ(found.layout, wanted.layout);
      EXPECT_EQ(found.piece_bytes, wanted.piece_bytes);
      const Bytes bytes = joined(wanted.chunks);
      if (wanted.piece_bytes == 0) {
        EXPECT_EQ(Bytes(found.bytes.begin(), found.bytes.end()), bytes);
        continue;
      }
      EXPECT_TRUE(found.bytes.empty());
      Bytes mapped = mapped_bytes(snapshot, found);
      EXPECT_LT(mapped.size() - bytes.size(), region::os_page_bytes());
      EXPECT_EQ(Bytes(mapped.begin() + static_cast<std::ptrdiff_t>(bytes.size()), mapped.end()),
                Bytes(mapped.size() - bytes.size(), 0));
      mapped.resize(bytes.size());
      EXPECT_TRUE(mapped == bytes) << found.full_name;
      Bytes read(bytes.size());
      const Status status = snapshot.read(found, 0, read);
      EXPECT_TRUE(status.is_ok()) << status.message();
      EXPECT_TRUE(read == bytes) << found.full_name;
      const auto digests = snapshot.digests(found);
      EXPECT_EQ(digests.size(), piece_count(bytes.size(), wanted.piece_bytes));
      for (size_t i = 0; i < digests.size(); ++i) {
        const size_t begin = i * wanted.piece_bytes;
        EXPECT_EQ(digests[i], blake3(ByteSpan(bytes).subspan(
                                  begin, std::min<size_t>(wanted.piece_bytes, bytes.size() - begin))));
      }
    }
  }
}

}  // namespace driftwood::snapshot
