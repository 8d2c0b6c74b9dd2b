// What a store survives: being killed or refused at any change to the disk, and damage to its files.
#include <cerrno>
#include <csignal>
#include <functional>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fault_hook.h"
#include "snapshot/test_store.h"

namespace driftwood::snapshot {
namespace {

namespace fs = std::filesystem;

// At the n-th change, from 0: kills the process, or fails with `error` (from then on, if it `stays`).
class FaultAt final : public os::FaultHook {
 public:
  FaultAt(int n, int error, bool stays = false) : left_(n), error_(error), stays_(stays) {
    os::set_fault_hook(this);
  }
  ~FaultAt() override { os::set_fault_hook(nullptr); }
  int before(os::Change, const std::string&) override {
    const int n = left_--;
    if (n > 0 || (n < 0 && !stays_)) return 0;
    happened_ = true;
    if (error_ == 0) ::raise(SIGKILL);
    return error_;
  }
  bool happened() const { return happened_; }

 private:
  int left_;
  int error_;
  bool stays_;
  bool happened_ = false;
};

// Runs `work` in a child that is killed at its n-th change. True if it came to its end before.
bool ends_before(int n, const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const FaultAt fault(n, 0);
    ::_exit(work() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return true;
  }
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  return false;
}

void expect_clean(const std::string& store) {
  for (const auto& entry : fs::recursive_directory_iterator(store)) {
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  }
}

Actor changed(Actor actor) {
  actor.set_page(1, 31337);
  actor.blocks.push_back(pattern(kUnitBytes, 31338));
  actor.created_ns = 2;
  return actor;
}

// Whole and what it was, by full verification; the name may be gone only if `may_be_absent`.
void expect_whole(Store* store, const std::string& name, const Actor& actor, bool may_be_absent) {
  const auto loaded = store->load(name, Verify::kFull);
  if (!loaded.is_ok() && may_be_absent && loaded.status().code() == Code::kNotFound) return;
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  expect_equal(**loaded, actor.contents());
}

TEST(StoreFault, KilledAtAnyChangeOfASave) {
  const TempFolder folder(kInMemory);
  const Actor before;
  const Actor after = changed(before);
  int n = 0;
  for (bool ended = false; !ended; ++n) {
    const std::string path = folder / std::to_string(n);
    ASSERT_TRUE(open_store(path)->save(before.contents(), "good").is_ok());
    ended = ends_before(n, [&] { return open_store(path)->save(after.contents(), "new").is_ok(); });
    auto store = open_store(path);
    expect_whole(store.get(), "good", before, false);
    expect_whole(store.get(), "new", after, !ended);
    const auto collected = store->gc({});
    ASSERT_TRUE(collected.is_ok()) << collected.status().message();
    EXPECT_TRUE(collected->kept_for.empty());
    expect_clean(path);
    ASSERT_TRUE(store->save(after.contents(), "new").is_ok());
    expect_whole(store.get(), "new", after, false);
    EXPECT_TRUE(store->verify("").is_ok());
    fs::remove_all(path);
  }
  EXPECT_GT(n, 20);
}

TEST(StoreFault, KilledAtAnyChangeOfMakingAStoreAndOfAnImport) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  ASSERT_TRUE(write_snapshot(folder / "file", actor.contents()).is_ok());
  int n = 0;
  for (bool ended = false; !ended; ++n) {
    const std::string path = folder / std::to_string(n);
    ended = ends_before(n, [&] { return open_store(path)->import_file(folder / "file", "x").is_ok(); });
    auto store = open_store(path);
    ASSERT_NE(store, nullptr);
    expect_whole(store.get(), "x", actor, !ended);
    ASSERT_TRUE(store->gc({}).is_ok());
    expect_clean(path);
    ASSERT_TRUE(store->import_file(folder / "file", "x").is_ok());
    expect_whole(store.get(), "x", actor, false);
    fs::remove_all(path);
  }
  EXPECT_GT(n, 20);
}

// What a crash may leave where a file system reorders the renames of a save: nothing names the snapshot yet.
TEST(StoreFault, AManifestWithoutItsPackIsGarbage) {
  const TempFolder folder;
  const Actor good;
  auto store = open_store(folder / "s");
  ASSERT_TRUE(store->save(good.contents(), "good").is_ok());
  const auto lost = store->save(changed(good).contents(), "");
  ASSERT_TRUE(lost.is_ok());
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(folder / "s/packs")) {
    if (newest.empty() || fs::last_write_time(entry) > fs::last_write_time(newest)) newest = entry.path();
  }
  fs::remove(newest);
  store = open_store(folder / "s");
  EXPECT_FALSE(store->load(lost->hash).is_ok());
  expect_whole(store.get(), "good", good, false);
  const auto collected = store->gc({});
  ASSERT_TRUE(collected.is_ok()) << collected.status().message();
  EXPECT_EQ(collected->snapshots_removed, 1u);
  EXPECT_TRUE(collected->kept_for.empty());
  ASSERT_TRUE(store->save(changed(good).contents(), "again").is_ok());
  expect_whole(store.get(), "again", changed(good), false);
  EXPECT_TRUE(store->verify("").is_ok());
}

// Two names on one mostly dead pack, a dead pack and an unnamed snapshot.
Actor make_work_for_gc(const std::string& path) {
  auto store = open_store(path);
  Actor actor;
  EXPECT_TRUE(store->save(actor.contents(), "a").is_ok());
  for (uint32_t i = 0; i < 5; ++i) actor.blocks[i] = pattern(kUnitBytes, 5000 + i);
  for (const size_t page : {0, 2, 5, 6}) actor.set_page(page, 6000 + static_cast<uint32_t>(page));
  EXPECT_TRUE(store->save(actor.contents(), "a").is_ok());
  Actor second = actor;
  second.created_ns = 3;
  EXPECT_TRUE(store->save(second.contents(), "b").is_ok());
  EXPECT_TRUE(store->save(Actor(8).contents(), "").is_ok());
  return actor;
}

TEST(StoreFault, KilledOrRefusedAtAnyChangeOfGc) {
  const TempFolder folder(kInMemory);
  for (const int error : {0, EIO, ENOSPC}) {
    int n = 0;
    for (bool ended = false; !ended; ++n) {
      const std::string path = folder / std::to_string(n);
      Actor actor = make_work_for_gc(path);
      if (error == 0) {
        ended = ends_before(n, [&] { return open_store(path)->gc({}).is_ok(); });
      } else {
        auto store = open_store(path);
        const FaultAt fault(n, error);
        const auto report = store->gc({});
        ended = !fault.happened();
        if (!report.is_ok()) {
          EXPECT_TRUE(holds(report.status(), path)) << report.status().message();
        }
      }
      auto store = open_store(path);
      expect_whole(store.get(), "a", actor, false);
      const auto report = store->gc({});
      ASSERT_TRUE(report.is_ok()) << report.status().message();
      EXPECT_EQ(store->list()->size(), 2U);
      expect_clean(path);
      expect_whole(store.get(), "a", actor, false);
      actor.created_ns = 3;
      expect_whole(store.get(), "b", actor, false);
      EXPECT_TRUE(store->verify("").is_ok());
      fs::remove_all(path);
    }
    EXPECT_GT(n, 10);
  }
}

TEST(StoreFault, RefusedAtAnyChangeOfASave) {
  const TempFolder folder(kInMemory);
  const Actor before;
  const Actor after = changed(before);
  for (const auto& [error, stays] :
       std::vector<std::pair<int, bool>>{{ENOSPC, true}, {EIO, false}, {EACCES, false}}) {
    for (int n = 0;; ++n) {
      const std::string path = folder / std::to_string(n);
      auto store = open_store(path);
      ASSERT_TRUE(store->save(before.contents(), "good").is_ok());
      bool happened = false;
      {
        const FaultAt fault(n, error, stays);
        const auto saved = store->save(after.contents(), "new");
        happened = fault.happened();
        if (!saved.is_ok()) {
          EXPECT_TRUE(holds(saved.status(), path)) << saved.status().message();
          if (error == ENOSPC) {
            EXPECT_EQ(saved.status().code(), Code::kResourceExhausted);
          }
        }
      }
      expect_whole(store.get(), "good", before, false);
      expect_whole(store.get(), "new", after, true);
      const auto saved = store->save(after.contents(), "new");
      ASSERT_TRUE(saved.is_ok()) << saved.status().message();
      expect_whole(store.get(), "new", after, false);
      ASSERT_TRUE(store->gc({}).is_ok());
      expect_clean(path);
      EXPECT_TRUE(store->verify("").is_ok());
      fs::remove_all(path);
      if (!happened) break;
    }
  }
}

std::string only_file(const std::string& folder) {
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  return fs::directory_iterator(folder)->path().string();
}

TEST(StoreFault, TruncationAtEvery4KiBIsRefused) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  ASSERT_TRUE(open_store(folder / "s")->save(actor.contents(), "a").is_ok());
  for (const char* part : {"s/packs", "s/snapshots"}) {
    const std::string file = only_file(folder / part);
    const Bytes whole = read_bytes(file);
    for (uint64_t size = whole.size() / 4096 * 4096; size > 0;) {
      size -= 4096;
      fs::resize_file(file, size);
      auto store = open_store(folder / "s");
      const auto loaded = store->load("a");
      ASSERT_FALSE(loaded.is_ok()) << size;
      EXPECT_EQ(loaded.status().code(), Code::kDataLoss) << loaded.status().message();
      EXPECT_TRUE(holds(loaded.status(), file)) << loaded.status().message();
    }
    write_bytes(file, whole);
    EXPECT_TRUE(open_store(folder / "s")->load("a").is_ok());
  }
}

TEST(StoreFault, AnyFlippedByteIsFoundOrInNoUse) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  ASSERT_TRUE(open_store(folder / "s")->save(actor.contents(), "a").is_ok());
  for (const char* part : {"s/packs", "s/snapshots"}) {
    const std::string file = only_file(folder / part);
    const Bytes whole = read_bytes(file);
    for (size_t at = 0; at < whole.size(); at += 4093) {
      Bytes bad = whole;
      bad[at] ^= 0x20;
      write_bytes(file, bad);
      auto store = open_store(folder / "s");
      EXPECT_EQ(store->verify("").code(), Code::kDataLoss) << file << " byte " << at;
      const auto loaded = store->load("a");
      // Damage in the pack's own tables harms no snapshot whose pieces are whole.
      if (loaded.is_ok()) {
        expect_equal(**loaded, actor.contents());
      } else {
        EXPECT_EQ(loaded.status().code(), Code::kDataLoss) << loaded.status().message();
        EXPECT_TRUE(holds(loaded.status(), folder / "s"));
      }
      // A writer does not rely on what is damaged.
      if (at % 7 == 0 && std::string(part) == "s/packs") {
        ASSERT_TRUE(store->save(changed(actor).contents(), "b").is_ok());
        expect_whole(store.get(), "b", changed(actor), false);
        ASSERT_TRUE(store->remove_name("b").is_ok());
        write_bytes(file, whole);
        ASSERT_TRUE(store->gc({}).is_ok());
        if (!fs::exists(file)) break;  // rewritten
      }
    }
    if (fs::exists(file)) write_bytes(file, whole);
    EXPECT_TRUE(open_store(folder / "s")->load("a", Verify::kFull).is_ok());
  }
}

TEST(StoreFault, TouchedFilesAreVerifiedOnceAndTrustedAgain) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  ASSERT_TRUE(open_store(folder / "s")->save(actor.contents(), "a").is_ok());
  fs::copy(folder / "s", folder / "t", fs::copy_options::recursive);
  const std::string pack = only_file(folder / "t/packs");
  const auto stamp_of_pack = [&] {
    return read_bytes(folder / ("t/stamps/pack-" + fs::path(pack).filename().string()));
  };
  const Bytes before = stamp_of_pack();
  ASSERT_TRUE(open_store(folder / "t", true)->load("a").is_ok());
  EXPECT_EQ(stamp_of_pack(), before);  // nothing is written
  auto store = open_store(folder / "t");
  expect_whole(store.get(), "a", actor, false);
  EXPECT_NE(stamp_of_pack(), before);
  // Trusted means not read: a change that keeps the stamp would go unseen, one that does not is found.
  Bytes bytes = read_bytes(pack);
  bytes[70'000] ^= 1;
  write_bytes(pack, bytes);
  const auto loaded = store->load("a");
  EXPECT_EQ(loaded.status().code(), Code::kDataLoss);
  EXPECT_TRUE(holds(loaded.status(), "piece")) << loaded.status().message();
}

TEST(StoreFault, ASwappedPackDoesNotReachWhoHasTheOldOneOpen) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  auto store = open_store(folder / "s");
  ASSERT_TRUE(store->save(actor.contents(), "a").is_ok());
  const auto held = store->load("a");
  const std::string pack = only_file(folder / "s/packs");
  write_bytes(folder / "other", Bytes(fs::file_size(pack), 7));
  fs::rename(folder / "other", pack);
  expect_equal(**held, actor.contents());
  EXPECT_FALSE(store->load("a").is_ok());
}

TEST(StoreFault, EmptyFilesLinksAndPipesAreRefused) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  ASSERT_TRUE(open_store(folder / "s")->save(actor.contents(), "a").is_ok());
  for (const std::string& file :
       {only_file(folder / "s/packs"), only_file(folder / "s/snapshots"), folder / "s/names/a"}) {
    fs::rename(file, folder / "aside");
    const auto refused = [&] {
      const auto loaded = open_store(folder / "s")->load("a");
      EXPECT_FALSE(loaded.is_ok()) << file;
      if (!loaded.is_ok()) {
        EXPECT_TRUE(holds(loaded.status(), folder / "s")) << loaded.status().message();
      }
      fs::remove(file);
    };
    refused();
    write_bytes(file, {});
    refused();
    ASSERT_EQ(::symlink((folder / "aside").c_str(), file.c_str()), 0);
    refused();
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    refused();
    fs::create_directory(file);
    refused();
    fs::rename(folder / "aside", file);
  }
  expect_whole(open_store(folder / "s").get(), "a", actor, false);
}

TEST(StoreFault, GcRemovesNothingWhileANamedManifestCantBeRead) {
  const TempFolder folder(kInMemory);
  auto store = open_store(folder / "s");
  const Actor actor;
  ASSERT_TRUE(store->save(actor.contents(), "a").is_ok());
  const std::string manifest = only_file(folder / "s/snapshots");
  ASSERT_TRUE(store->save(Actor(5).contents(), "").is_ok());
  const Bytes whole = read_bytes(manifest);
  Bytes bad = whole;
  bad[bad.size() - 2 * kUnitBytes] ^= 1;
  write_bytes(manifest, bad);
  const auto report = store->gc({});
  ASSERT_TRUE(report.is_ok());
  ASSERT_EQ(report->kept_for.size(), 1U);
  EXPECT_TRUE(report->kept_for[0].find(manifest) != std::string::npos) << report->kept_for[0];
  EXPECT_EQ(report->packs_removed + report->snapshots_removed, 0U);
  write_bytes(manifest, whole);
  EXPECT_EQ(store->gc({})->packs_removed, 1U);
  expect_whole(store.get(), "a", actor, false);
}

TEST(StoreFault, AReadOnlyFolderIsReadAndNotWritten) {
  const TempFolder folder(kInMemory);
  const Actor actor;
  ASSERT_TRUE(open_store(folder / "s")->save(actor.contents(), "a").is_ok());
  fs::remove(folder / "s/lock");
  fs::permissions(folder.path(), fs::perms(0755));
  for (const auto& entry : fs::recursive_directory_iterator(folder / "s")) {
    fs::permissions(entry.path(), fs::perms(entry.is_directory() ? 0555 : 0444));
  }
  fs::permissions(folder / "s", fs::perms(0555));
  if (::geteuid() == 0) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  for (const bool read_only : {true, false}) {
    auto store = Store::open(folder / "s", {false, read_only, 1});
    ASSERT_TRUE(store.is_ok()) << store.status().message();
    expect_whole(store->get(), "a", actor, false);
    EXPECT_TRUE((*store)->list().is_ok());
    EXPECT_EQ((*store)->save(changed(actor).contents(), "b").status().code(), Code::kPermissionDenied);
    EXPECT_EQ((*store)->remove_name("a").code(), Code::kPermissionDenied);
    EXPECT_EQ((*store)->gc({}).status().code(), Code::kPermissionDenied);
  }
  if (::getuid() == 0) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  fs::permissions(folder / "s", fs::perms(0755));
  for (const char* part : {"s/packs", "s/snapshots", "s/names", "s/stamps"}) {
    fs::permissions(folder / part, fs::perms(0755));
  }
}

TEST(StoreFault, TwoProcessesSaveAtOnce) {
  const TempFolder folder(kInMemory);
  ASSERT_NE(open_store(folder / "s"), nullptr);
  std::vector<pid_t> children;
  for (uint32_t seed = 0; seed < 2; ++seed) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    auto store = open_store(folder / "s");
    bool good = store != nullptr;
    for (uint32_t i = 0; good && i < 12; ++i) {
      const std::string name = "n" + std::to_string(seed * 100 + i);
      good = store->save(Actor(i).contents(), name).is_ok();
      if (i % 5 == 4) good = good && store->gc({}).is_ok();
    }
    ::_exit(good ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  auto store = open_store(folder / "s");
  EXPECT_EQ(store->list()->size(), 12U);
  for (uint32_t i = 0; i < 12; ++i) expect_whole(store.get(), "n" + std::to_string(100 + i), Actor(i), false);
}

}  // namespace
}  // namespace driftwood::snapshot
