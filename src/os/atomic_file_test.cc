#include "os/atomic_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "os/mapped_file.h"

namespace driftwood::os {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "dw_os_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  size_t files_in_folder() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }
  std::string folder_;
};

TEST_F(AtomicFileTest, WritesWholeAndReplaces) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(write_file_atomically(path, bytes_of("one"), FileAccess::kPrivate).is_ok());
  ASSERT_TRUE(write_file_atomically(path, bytes_of("second"), FileAccess::kPrivate).is_ok());
  EXPECT_EQ(read_text_file(path, 100).value(), "second");
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(AtomicFileTest, WithoutCommitTheOldFileStays) {
  const std::string path = folder_ + "/a";
  ASSERT_TRUE(write_file_atomically(path, bytes_of("old"), FileAccess::kShared).is_ok());
  {
    auto file = AtomicFile::create(path, FileAccess::kShared);
    ASSERT_TRUE(file.is_ok());
    ASSERT_TRUE(file->write(bytes_of("half")).is_ok());
  }
  EXPECT_EQ(read_text_file(path, 100).value(), "old");
  EXPECT_EQ(files_in_folder(), 1u);
}

TEST_F(AtomicFileTest, MappedWritesArriveInTheFile) {
  const std::string path = folder_ + "/m";
  auto file = AtomicFile::create(path, FileAccess::kPrivate);
  ASSERT_TRUE(file.is_ok());
  auto base = file->map_for_writing(10000);
  ASSERT_TRUE(base.is_ok());
  for (int i = 0; i < 10000; ++i) base->data()[i] = static_cast<uint8_t>(i * 7);
  ASSERT_TRUE(file->commit().is_ok());
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped.is_ok());
  ASSERT_EQ((*mapped)->bytes().size(), 10000u);
  for (int i = 0; i < 10000; ++i)
    ASSERT_EQ((*mapped)->bytes()[static_cast<size_t>(i)], static_cast<uint8_t>(i * 7));
  (*mapped)->drop_pages((*mapped)->bytes());
  EXPECT_EQ((*mapped)->bytes()[9999], static_cast<uint8_t>(9999 * 7));
}

TEST_F(AtomicFileTest, AbandonedFilesGo) {
  const auto put = [&](const std::string& name) { std::ofstream(folder_ + "/" + name) << "x"; };
  put(".model.dwpack.tmp-12345-0");  // nobody has it open
  put(".hidden");
  put("model.tmp-12345-0");
  put(".model.tmp-12a");
  fs::create_directory(folder_ + "/.folder.tmp-1-1");
  auto writing = AtomicFile::create(folder_ + "/other", FileAccess::kPrivate);
  ASSERT_TRUE(writing.is_ok());
  ASSERT_EQ(files_in_folder(), 6u);
  remove_abandoned_files(folder_);
  EXPECT_EQ(files_in_folder(), 5u);
  EXPECT_FALSE(fs::exists(folder_ + "/.model.dwpack.tmp-12345-0"));
  ASSERT_TRUE(writing->write(bytes_of("whole")).is_ok());
  EXPECT_TRUE(writing->commit().is_ok());
  EXPECT_TRUE(fs::exists(folder_ + "/other"));
  remove_abandoned_files(folder_ + "/none");
}

TEST_F(AtomicFileTest, ErrorsNameTheFile) {
  const Status missing = MappedFile::open(folder_ + "/none").status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.message().find("/none"), std::string::npos);
  EXPECT_EQ(MappedFile::open(folder_).status().code(), Code::kInvalidArgument);
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(folder_ + "/pipe").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(AtomicFile::create(folder_ + "/no/such", FileAccess::kPrivate).status().code(), Code::kNotFound);
  ASSERT_TRUE(write_file_atomically(folder_ + "/big", bytes_of("12345"), FileAccess::kShared).is_ok());
  EXPECT_EQ(read_text_file(folder_ + "/big", 4).status().code(), Code::kResourceExhausted);
}

TEST_F(AtomicFileTest, EmptyFileMapsToNothing) {
  ASSERT_TRUE(write_file_atomically(folder_ + "/e", {}, FileAccess::kShared).is_ok());
  auto mapped = MappedFile::open(folder_ + "/e");
  ASSERT_TRUE(mapped.is_ok());
  EXPECT_TRUE((*mapped)->bytes().empty());
}

TEST_F(AtomicFileTest, MakesPrivateFolders) {
  ASSERT_TRUE(make_private_folders(folder_ + "/x/y/z").is_ok());
  ASSERT_TRUE(make_private_folders(folder_ + "/x/y/z").is_ok());
  struct stat info;
  ASSERT_EQ(::stat((folder_ + "/x/y").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  ASSERT_TRUE(write_file_atomically(folder_ + "/f", {}, FileAccess::kShared).is_ok());
  EXPECT_FALSE(make_private_folders(folder_ + "/f/g").is_ok());
}

}  // namespace
}  // namespace driftwood::os
