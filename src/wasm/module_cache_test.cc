#include "wasm/module_cache.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "wasm/guest_for_test.h"
#include "wasm/wasi/wasi_for_test.h"

namespace driftwood::wasm {
namespace {

namespace fs = std::filesystem;

constexpr char kGuest[] = R"((module (memory 1) (data (i32.const 0) "x")
  (func (export "answer") (result i32) (i32.const 42))))";

class Cache : public ::testing::Test {
 protected:
  // Each load stands for a process of its own: its runtime is new.
  bool load_from_cache(bool deterministic = true) {
    RuntimeOptions options;
    options.cache_dir = folder();
    options.require_deterministic = deterministic;
    auto runtime = std::move(Runtime::create(options)).value();
    auto module = load_text(kGuest, *runtime);
    EXPECT_TRUE(module.is_ok()) << module.status().to_string();
    auto instance = runtime->instantiate(*module, {}, {});
    EXPECT_TRUE(instance.is_ok()) << instance.status().to_string();
    EXPECT_EQ((*instance)->call("answer", {})->at(0), 42u);
    return (*module)->report().from_cache;
  }
  std::string folder() const { return (parent_.path() / "cache/modules").string(); }
  fs::path only_file() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
    return fs::directory_iterator(folder())->path();
  }
  void change(size_t offset) const {
    std::fstream file(only_file(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char old = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(old ^ 1));
  }
  TestFolder parent_;
};

TEST_F(Cache, ASecondLoadTakesTheCompiledCode) {
  EXPECT_FALSE(load_from_cache());
  EXPECT_TRUE(load_from_cache());
  struct stat info;
  ASSERT_EQ(stat(only_file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(folder().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(Cache, WithoutAFolderNothingIsKept) {
  auto first = load_text(kGuest);
  auto second = load_text(kGuest);
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  EXPECT_FALSE((*second)->report().from_cache);
}

TEST_F(Cache, AnotherConfigurationHasAnotherKey) {
  EXPECT_FALSE(load_from_cache(true));
  EXPECT_FALSE(load_from_cache(false));
  EXPECT_TRUE(load_from_cache(true));
  EXPECT_TRUE(load_from_cache(false));
}

TEST_F(Cache, AChangedFileIsIgnoredAndReplaced) {
  EXPECT_FALSE(load_from_cache());
  const size_t size = fs::file_size(only_file());
  for (const size_t offset : {size_t{0}, size_t{9}, size_t{41}, size_t{48}, size / 2, size - 1}) {
    change(offset);
    EXPECT_FALSE(load_from_cache()) << "byte " << offset;
    EXPECT_TRUE(load_from_cache());
  }
  for (const size_t length : {size_t{0}, size_t{7}, size_t{47}, size_t{48}, size - 1}) {
    fs::resize_file(only_file(), length);
    EXPECT_FALSE(load_from_cache()) << "cut to " << length;
    EXPECT_TRUE(load_from_cache());
  }
}

TEST_F(Cache, AFileUnderAnotherKeyIsIgnored) {
  EXPECT_FALSE(load_from_cache(true));
  const fs::path first = only_file();
  const fs::path copy = parent_.path() / "copy";
  fs::copy_file(first, copy);
  fs::remove(first);
  EXPECT_FALSE(load_from_cache(false));
  fs::copy_file(copy, only_file(), fs::copy_options::overwrite_existing);
  EXPECT_FALSE(load_from_cache(false));
}

TEST_F(Cache, FilesThatOthersCouldHaveWrittenAreNotTrusted) {
  EXPECT_FALSE(load_from_cache());
  ASSERT_EQ(chmod(folder().c_str(), 0777), 0);
  EXPECT_FALSE(load_from_cache()) << "a folder that others may write";
  ASSERT_EQ(chmod(folder().c_str(), 0700), 0);
  EXPECT_TRUE(load_from_cache());
  ASSERT_EQ(chmod(only_file().c_str(), 0666), 0);
  EXPECT_FALSE(load_from_cache()) << "a file that others may write";
  EXPECT_TRUE(load_from_cache()) << "it was replaced";
  const fs::path file = only_file();
  const fs::path elsewhere = parent_.path() / "elsewhere";
  fs::rename(file, elsewhere);
  fs::create_symlink(elsewhere, file);
  EXPECT_FALSE(load_from_cache()) << "a link";
}

TEST_F(Cache, AFolderThatCannotBeMadeCostsOnlyTheCache) {
  std::ofstream(parent_.path() / "cache") << "a file stands in the way";
  EXPECT_FALSE(load_from_cache());
  EXPECT_FALSE(load_from_cache());
}

TEST_F(Cache, ManyLoadersAtOnceAgree) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this] { load_from_cache(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(load_from_cache());
  only_file();
}

}  // namespace
}  // namespace driftwood::wasm
