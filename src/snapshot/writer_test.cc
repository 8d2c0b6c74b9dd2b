#include "snapshot/writer.h"

#include <csignal>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/test_snapshots.h"

namespace driftwood::snapshot {
namespace {

// The older file of the same name is still there, whole, and nothing else is.
void expect_only_the_older(const TempFolder& folder, const std::string& path, const Bytes& older) {
  EXPECT_EQ(folder.file_count(), 1U);
  EXPECT_EQ(read_bytes(path), older);
  EXPECT_TRUE(check_all(read_bytes(path)).is_ok());
}

TEST(Writer, ThreadsAndChunksDoNotChangeTheBytes) {
  TestSnapshot made;
  const Bytes once = made.write();
  EXPECT_EQ(made.write(), once);
  std::vector<ByteSpan>& chunks = made.contents.sections[0].tensors[0].chunks;
  const ByteSpan memory = made.memory;
  chunks = {memory.first(16384), memory.subspan(16384, 65536), memory.subspan(81920)};
  made.contents.sections[1].tensors[1].chunks = {ByteSpan(made.odd).first(7), ByteSpan(made.odd).subspan(7)};
  const TempFolder folder;
  ASSERT_TRUE(write_snapshot(folder / "s", made.contents, 4).is_ok());
  EXPECT_EQ(read_bytes(folder / "s"), once);
}

TEST(Writer, FilesArePrivate) {
  const TempFolder folder;
  ASSERT_TRUE(write_snapshot(folder / "s", TestSnapshot().contents).is_ok());
  struct stat info;
  ASSERT_EQ(::stat((folder / "s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(Writer, EmptySnapshotAndShortLastPiece) {
  const TempFolder folder;
  ASSERT_TRUE(write_snapshot(folder / "empty", {}).is_ok());
  EXPECT_EQ(std::filesystem::file_size(folder / "empty"), kUnitBytes);
  EXPECT_TRUE(check_all(read_bytes(folder / "empty")).is_ok());
  const Bytes bytes = pattern(5000, 4);
  SnapshotContents contents;
  contents.sections = {{{"a", "k", {}}, {{{"b", DType::kU8, {5000}, "[byte]", 4096}, {bytes}}}}};
  ASSERT_TRUE(write_snapshot(folder / "s", contents).is_ok());
  const auto opened = Snapshot::open(folder / "s");
  ASSERT_TRUE(opened.is_ok());
  EXPECT_EQ((*opened)->find("a")->find("b")->piece_hashes.size(), 2 * sizeof(Digest));
  EXPECT_TRUE((*opened)->verify_contents().is_ok());
}

TEST(Writer, RefusesWhatTheFormatDoesNotAllow) {
  const TempFolder folder;
  const auto refused = [&](const char* message, auto&& change) {
    TestSnapshot made;
    change(made.contents);
    const auto written = write_snapshot(folder / "s", made.contents);
    ASSERT_FALSE(written.is_ok()) << message;
    EXPECT_TRUE(holds(written.status(), message)) << written.status().message();
    EXPECT_EQ(folder.file_count(), 0U);
  };
  refused("not a name", [](SnapshotContents& c) { c.sections[0].name = "Memory"; });
  refused("appears twice", [](SnapshotContents& c) { c.sections[1].name = "memory"; });
  refused("not a name", [](SnapshotContents& c) { c.sections[1].tensors[0].name = ""; });
  refused("layout", [](SnapshotContents& c) { c.sections[1].tensors[0].layout = ""; });
  refused("multiple of 4 KiB", [](SnapshotContents& c) { c.sections[0].tensors[0].piece_bytes = 100; });
  refused("UTF-8", [](SnapshotContents& c) { c.origin.notes["x"] = "\xFF"; });
  refused("UTF-8", [](SnapshotContents& c) { c.sections[0].attributes["x"] = "\xC3"; });
  refused("parent", [](SnapshotContents& c) { c.origin.parent = "me"; });
  refused("its header has", [](SnapshotContents& c) { c.origin.notes["x"] = std::string(17 << 20, 'x'); });
}

TEST(Writer, FileSizeLimitLeavesTheOlderFile) {
  const TempFolder folder;
  const std::string path = folder / "s";
  TestSnapshot made;
  ASSERT_TRUE(write_snapshot(path, made.contents).is_ok());
  const Bytes older = read_bytes(path);
  made.contents.origin.created_ns = 5;
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (rlim_t bytes = 0; bytes < older.size(); bytes += 32768) {
    const rlimit small = {bytes, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto written = write_snapshot(path, made.contents);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_FALSE(written.is_ok()) << bytes;
    expect_only_the_older(folder, path, older);
  }
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(write_snapshot(path, made.contents).is_ok());
  EXPECT_NE(read_bytes(path), older);
}

// A small file system over a folder, for as long as the object lives.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder)
      : folder_(std::move(folder)),
        mounted_(::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=600k") == 0) {}
  ~SmallDisk() {
    if (mounted_) {
      EXPECT_EQ(::umount(folder_.c_str()), 0);
    }
  }
  bool is_mounted() const { return mounted_; }

 private:
  std::string folder_;
  bool mounted_;
};

TEST(Writer, FullDiskLeavesTheOlderFile) {
  const TempFolder folder;
  const SmallDisk disk(folder.path());
  if (!disk.is_mounted()) {
    GTEST_SKIP() << "a file system of its own cannot be mounted here";
  }
  const std::string path = folder / "s";
  TestSnapshot made;
  ASSERT_TRUE(write_snapshot(path, made.contents).is_ok());  // 384 KiB of 600
  const Bytes older = read_bytes(path);
  made.contents.origin.created_ns = 5;
  const auto written = write_snapshot(path, made.contents);
  EXPECT_EQ(written.status().code(), Code::kResourceExhausted) << written.status().message();
  expect_only_the_older(folder, path, older);
}

TEST(Writer, ReadOnlyFolderLeavesTheOlderFile) {
  const TempFolder folder;
  const std::string path = folder / "s";
  TestSnapshot made;
  ASSERT_TRUE(write_snapshot(path, made.contents).is_ok());
  const Bytes older = read_bytes(path);
  made.contents.origin.created_ns = 5;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const uid_t user = ::geteuid();
  // Permissions do not bind root.
  if (user == 0) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto written = write_snapshot(path, made.contents);
  if (user == 0) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_EQ(::chmod(folder.path().c_str(), 0700), 0);
  EXPECT_EQ(written.status().code(), Code::kPermissionDenied) << written.status().message();
  expect_only_the_older(folder, path, older);
  EXPECT_FALSE(write_snapshot(folder / "no/such/folder/s", made.contents).is_ok());
}

}  // namespace
}  // namespace driftwood::snapshot
