// The store: what is kept once, what comes back, names, trust.
#include "snapshot/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "snapshot/test_store.h"

namespace driftwood::snapshot {
namespace {

namespace fs = std::filesystem;

TEST(Store, WhatIsSavedComesBack) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  const Actor actor;
  const auto saved = store->save(actor.contents(), "first");
  ASSERT_TRUE(saved.is_ok()) << saved.status().message();
  EXPECT_EQ(saved->pieces_total, 10U + 6 + 2);
  EXPECT_EQ(saved->pieces_zero, 5U);
  EXPECT_EQ(saved->pieces_written, 5U + 6 + 2);
  const auto loaded = store->load("first");
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  expect_equal(**loaded, actor.contents());
  EXPECT_EQ((*loaded)->hash(), saved->hash);
  const auto again = open_store(folder / "s", true)->load(saved->hash.substr(0, 8), Verify::kFull);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  expect_equal(**again, actor.contents());
}

TEST(Store, PartialReadsCrossPiecesAndZeros) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  const Actor actor;
  ASSERT_TRUE(store->save(actor.contents(), "a").is_ok());
  const auto loaded = store->load("a");
  const StoredTensor& pages = *(*loaded)->find("memory")->find("pages");
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, size_t>>{{0, 1},
                                                                             {65535, 2},
                                                                             {3 * kUnitBytes - 5, 200'000},
                                                                             {10 * kUnitBytes - 1, 1},
                                                                             {10 * kUnitBytes, 0}}) {
    Bytes out(size, 9);
    ASSERT_TRUE((*loaded)->read(pages, offset, out).is_ok());
    EXPECT_TRUE(
        std::equal(out.begin(), out.end(), actor.memory.begin() + static_cast<std::ptrdiff_t>(offset)));
  }
  Bytes out(2);
  EXPECT_EQ((*loaded)->read(pages, 10 * kUnitBytes - 1, out).code(), Code::kOutOfRange);
}

TEST(Store, TheHashIsThePortableFilesAndExportGivesThatFile) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  ASSERT_TRUE(write_snapshot(folder / "portable", actor.contents()).is_ok());
  auto store = open_store(folder / "s");
  const auto saved = store->save(actor.contents(), "a");
  EXPECT_EQ(saved->hash, (*Snapshot::open(folder / "portable"))->hash());
  const auto exported = store->export_file("a", folder / "exported");
  ASSERT_TRUE(exported.is_ok()) << exported.status().message();
  EXPECT_TRUE(read_bytes(folder / "exported") == read_bytes(folder / "portable"));
  auto other = open_store(folder / "t");
  const auto imported = other->import_file(folder / "exported", "b");
  ASSERT_TRUE(imported.is_ok()) << imported.status().message();
  EXPECT_EQ(imported->hash, saved->hash);
  expect_equal(**other->load("b"), actor.contents());
  ASSERT_TRUE(other->export_file("b", folder / "again").is_ok());
  EXPECT_TRUE(read_bytes(folder / "again") == read_bytes(folder / "portable"));
}

TEST(Store, TheSecondSaveWritesWhatChangedAndReadsNothingKnown) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  Actor actor;
  auto saved = store->save(actor.contents(), "a");
  actor.known = saved->digests;
  actor.created_ns = 2;
  actor.set_page(5, 999);
  actor.known["memory.pages"][5] = {};
  const SnapshotContents truth = actor.contents();
  // Known bytes may be anything in memory: nobody looks at them.
  SnapshotContents blind = truth;
  const Bytes lies(kUnitBytes, 0xEE);
  for (ByteSpan& block : blind.sections[1].tensors[0].chunks) block = lies;
  const auto second = store->save(blind, "b");
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(second->pieces_written, 1U);
  EXPECT_LT(second->bytes_written, 20 * kUnitBytes);
  const auto loaded = store->load("b", Verify::kFull);
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  expect_equal(**loaded, truth);
  EXPECT_TRUE(store->verify("").is_ok());
}

TEST(Store, SavingTheSameAgainWritesOnlyTheName) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  const Actor actor;
  const auto first = store->save(actor.contents(), "a");
  const auto second = store->save(actor.contents(), "b");
  EXPECT_EQ(first->hash, second->hash);
  EXPECT_EQ(second->bytes_written, 0U);
  EXPECT_EQ(second->pieces_written, 0U);
  EXPECT_EQ(store->resolve("b").value(), first->hash);
}

TEST(Store, ScatteredPiecesAreWrittenTogetherAgain) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  Bytes memory = pattern(400 * kUnitBytes, 1);
  SectionTensor pages{{"pages", DType::kU8, {400, 65536}, "[page][byte]", kUnitBytes}, {memory}, {}};
  SnapshotContents contents{test_identity(), {}, {{{"memory", "linear_memory", {}}, {pages}}}};
  ASSERT_TRUE(store->save(contents, "0").is_ok());
  size_t most = 0;
  bool rewritten = false;
  for (uint64_t i = 1; i < 80; ++i) {
    memory[i * 4 * kUnitBytes] ^= 0x55;
    contents.origin.created_ns = i;
    const auto saved = store->save(contents, std::to_string(i));
    ASSERT_TRUE(saved.is_ok());
    rewritten = rewritten || saved->pieces_written == 400;
    const auto loaded = store->load(std::to_string(i));
    const StoredTensor& tensor = *(*loaded)->find("memory")->find("pages");
    most = std::max(most, (*loaded)->pieces(tensor).size());
    if (i % 20 == 19) {
      EXPECT_TRUE(mapped_bytes(**loaded, tensor) == memory);
    }
  }
  EXPECT_LE(most, 64U);
  EXPECT_GT(most, 50U);
  EXPECT_TRUE(rewritten);
}

TEST(Store, NamesAreChecked) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  const Actor actor;
  const auto saved = store->save(actor.contents(), "good");
  for (const std::string& bad :
       {std::string("../x"), std::string("a/b"), std::string(300, 'a'), std::string(".x"),
        std::string("a\0b", 3), std::string(64, 'a'), std::string("a b")}) {
    EXPECT_EQ(store->save(actor.contents(), bad).status().code(), Code::kInvalidArgument) << bad;
    EXPECT_EQ(store->set_name(bad, saved->hash).code(), Code::kInvalidArgument) << bad;
    EXPECT_EQ(store->remove_name(bad).code(), Code::kInvalidArgument) << bad;
    EXPECT_EQ(store->load(bad).status().code(), Code::kNotFound) << bad;
  }
  EXPECT_EQ(store->load("").status().code(), Code::kNotFound);
  EXPECT_EQ(store->set_name("", saved->hash).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->set_name("x", std::string(64, 'a')).code(), Code::kNotFound);
  EXPECT_TRUE(store->set_name(std::string(200, 'n'), saved->hash).is_ok());
  EXPECT_TRUE(store->remove_name("good").is_ok());
  EXPECT_EQ(store->remove_name("good").code(), Code::kNotFound);
  EXPECT_EQ(store->load("good").status().code(), Code::kNotFound);
  EXPECT_EQ(store->list()->at(0).names, std::vector<std::string>{std::string(200, 'n')});
}

TEST(Store, ListIsOldestFirstWithLineage) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  Actor actor;
  actor.created_ns = 50;
  const std::string parent = store->save(actor.contents(), "b")->hash;
  actor.parent = parent;
  actor.created_ns = 7;
  ASSERT_TRUE(store->save(actor.contents(), "a").is_ok());
  const auto list = store->list();
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ(list->at(0).created_ns, 7U);
  EXPECT_EQ(list->at(0).parent, parent);
  EXPECT_EQ(list->at(1).names, std::vector<std::string>{"b"});
  EXPECT_EQ(list->at(1).bytes_total, 16 * kUnitBytes + 5000 + 24);
}

TEST(Store, FilesArePrivateAndFoldersToo) {
  const TempFolder folder(kInMemory);
  ASSERT_TRUE(open_store(folder / "s")->save(Actor().contents(), "a").is_ok());
  for (const auto& entry : fs::recursive_directory_iterator(folder / "s")) {
    struct stat info;
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, entry.is_directory() ? 0700U : 0600U) << entry.path();
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos);
  }
}

TEST(Store, OtherFoldersAndFormatsAreLeftAlone) {
  const TempFolder folder(kInMemory);
  EXPECT_EQ(Store::open(folder / "none", {}).status().code(), Code::kNotFound);
  write_bytes(folder / "letter", {1, 2, 3});
  EXPECT_EQ(Store::open(folder.path(), {true}).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(folder.file_count(), 1U);
  ASSERT_NE(open_store(folder / "s"), nullptr);
  const std::string other = "driftwood store 7\n";
  write_bytes(folder / "s/format", Bytes(other.begin(), other.end()));
  const Status status = Store::open(folder / "s", {true}).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_TRUE(holds(status, "format 7")) << status.message();
}

TEST(Store, AReservedSectionNameIsRefused) {
  const TempFolder folder(kInMemory);
  SnapshotContents contents;
  contents.sections = {{{".store", "x", {}}, {}}};
  EXPECT_EQ(open_store(folder / "s")->save(contents, "").status().code(), Code::kInvalidArgument);
}

TEST(Store, GcKeepsWhatNamesNeedAndNothingElse) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  Actor actor;
  ASSERT_TRUE(store->save(actor.contents(), "old").is_ok());
  actor.created_ns = 2;
  actor.set_page(0, 4242);
  ASSERT_TRUE(store->save(actor.contents(), "new").is_ok());
  ASSERT_TRUE(store->save(Actor(9).contents(), "").is_ok());
  const auto dry = store->gc({true});
  EXPECT_EQ(dry->snapshots_removed, 1U);
  EXPECT_EQ(dry->packs_removed, 1U);
  EXPECT_EQ(store->list()->size(), 3U);
  const auto first = store->gc({});
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  EXPECT_EQ(first->snapshots_removed, 1U);
  EXPECT_EQ(first->packs_removed, 1U);
  EXPECT_EQ(first->bytes_freed, dry->bytes_freed);
  ASSERT_TRUE(store->remove_name("old").is_ok());
  ASSERT_TRUE(store->gc({}).is_ok());
  expect_equal(**store->load("new", Verify::kFull), actor.contents());
  const auto none = store->gc({});
  EXPECT_EQ(none->bytes_freed + none->packs_rewritten + none->packs_removed, 0U);
  ASSERT_TRUE(store->remove_name("new").is_ok());
  ASSERT_TRUE(store->gc({}).is_ok());
  for (const char* part : {"s/packs", "s/snapshots", "s/names", "s/stamps"}) {
    EXPECT_TRUE(fs::is_empty(folder / part)) << part;
  }
}

TEST(Store, GcRewritesAPackThatIsMostlyDead) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  Actor actor;
  ASSERT_TRUE(store->save(actor.contents(), "a").is_ok());
  for (uint32_t i = 0; i < 5; ++i) actor.blocks[i] = pattern(kUnitBytes, 5000 + i);
  for (const size_t page : {0, 2, 5, 6}) actor.set_page(page, 6000 + static_cast<uint32_t>(page));
  ASSERT_TRUE(store->save(actor.contents(), "a").is_ok());
  const auto held = store->load("a");
  const auto report = store->gc({});
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(report->packs_rewritten, 1U);
  EXPECT_GT(report->bytes_freed, 5 * kUnitBytes);
  expect_equal(**held, actor.contents());  // its files are gone, but open
  expect_equal(**store->load("a", Verify::kFull), actor.contents());
  EXPECT_TRUE(open_store(folder / "s", true)->verify("").is_ok());
  EXPECT_EQ(store->gc({})->packs_rewritten, 0U);
}

TEST(Store, ImportLeavesNothingOfADamagedFile) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  ASSERT_TRUE(write_snapshot(folder / "p", actor.contents()).is_ok());
  Bytes file = read_bytes(folder / "p");
  file[file.size() - 2 * kUnitBytes] ^= 1;
  write_bytes(folder / "p", file);
  auto store = open_store(folder / "s");
  EXPECT_EQ(store->import_file(folder / "p", "x").status().code(), Code::kDataLoss);
  EXPECT_TRUE(fs::is_empty(folder / "s/packs"));
  EXPECT_TRUE(fs::is_empty(folder / "s/snapshots"));
  EXPECT_TRUE(fs::is_empty(folder / "s/names"));
}

size_t open_descriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}
size_t mappings() {
  const Bytes maps = read_bytes("/proc/self/maps");
  return static_cast<size_t>(std::count(maps.begin(), maps.end(), '\n'));
}

TEST(Store, ThousandCyclesLeaveNothing) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  SnapshotContents contents;
  Bytes page = pattern(kUnitBytes, 1);
  SectionTensor pages{{"pages", DType::kU8, {1, 65536}, "[page][byte]", kUnitBytes}, {page}, {}};
  contents.sections = {{{"memory", "linear_memory", {}}, {pages}}};
  size_t descriptors = 0;
  size_t maps = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    page[0] = static_cast<uint8_t>(i % 250);
    page[1] = static_cast<uint8_t>(i / 250);
    ASSERT_TRUE(store->save(contents, "cycle").is_ok());
    ASSERT_TRUE(store->load("cycle").is_ok());
    ASSERT_TRUE(store->remove_name("cycle").is_ok());
    if (i % 10 == 0) {
      ASSERT_TRUE(store->gc({}).is_ok());
    }
    if (i == 100) {
      descriptors = open_descriptors();
      maps = mappings();
    }
  }
  ASSERT_TRUE(store->gc({}).is_ok());
  EXPECT_LE(open_descriptors(), descriptors);
  EXPECT_LE(mappings(), maps + 4);
  EXPECT_TRUE(fs::is_empty(folder / "s/packs"));
  EXPECT_TRUE(fs::is_empty(folder / "s/stamps"));
}

TEST(Store, ThreadsAndStoresShareAFolder) {
  const TempFolder folder(kInMemory);
  auto one = open_store(folder / "s");
  auto two = open_store(folder / "s");
  const auto work = [&](Store* store, uint32_t seed) {
    for (uint32_t i = 0; i < 10; ++i) {
      const Actor actor(seed + i % 3);
      const std::string name = "n" + std::to_string(seed) + "." + std::to_string(i);
      ASSERT_TRUE(store->save(actor.contents(), name).is_ok());
      const auto loaded = store->load(name, Verify::kFull);
      ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
      if (i % 4 == 3) {
        const auto collected = store->gc({});
        ASSERT_TRUE(collected.is_ok()) << collected.status().message();
      }
    }
  };
  {
    std::jthread a(work, one.get(), 1), b(work, two.get(), 2), c(work, one.get(), 3);
  }
  EXPECT_EQ(one->list()->size(), 5U);
  const Status status = one->verify("");
  EXPECT_TRUE(status.is_ok()) << status.message();
}

}  // namespace
}  // namespace driftwood::snapshot
