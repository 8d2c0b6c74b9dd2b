// Files through a real guest (C, wasi-libc): what a granted folder allows, and that nothing leaves it.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "wasm/wasi/wasi_for_test.h"

namespace driftwood::wasm {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<Module> guest_module(const std::string& name) {
  auto module = shared_runtime().load_file(std::string(DW_GUEST_DIR) + "/" + name + ".wasm");
  DW_CHECK(module.is_ok(), module.status().message().c_str());
  return *module;
}

// What the C library's errno gives for a WASI error: the same number.
int code(Errno error) { return -static_cast<int>(error); }

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_.path() / "inside");
    fs::create_directory(folder_.path() / "inside/sub");
    std::ofstream(folder_.path() / "inside/a.txt") << "hello";
    std::ofstream(folder_.path() / "secret.txt") << "secret";
    start(true);
  }
  void start(bool writable) {
    static const std::shared_ptr<Module> module = guest_module("wasm_files");
    InstanceOptions options;
    options.wasi.folders = {{"/data", (folder_.path() / "inside").string(), writable}};
    auto instance = shared_runtime().instantiate(module, {}, std::move(options));
    ASSERT_TRUE(instance.is_ok()) << instance.status().to_string();
    guest_ = std::move(*instance);
  }
  int call(const char* name, std::vector<uint64_t> args = {}) {
    auto result = guest_->call(name, args);
    EXPECT_TRUE(result.is_ok()) << name << ": " << result.status().to_string();
    return result.is_ok() ? static_cast<int>(result->at(0)) : -1;
  }
  void put(const char* where, const std::string& text) {
    const auto at = static_cast<uint32_t>(call(where));
    std::memcpy(guest_->bytes(at, text.size() + 1), text.c_str(), text.size() + 1);
  }
  std::string data(int bytes) {
    const auto at = static_cast<uint32_t>(call("data_at"));
    return {reinterpret_cast<const char*>(guest_->bytes(at, static_cast<uint64_t>(bytes))),
            static_cast<size_t>(bytes)};
  }
  int on(const std::string& path, const char* name, std::vector<uint64_t> args = {}) {
    put("path_at", path);
    return call(name, std::move(args));
  }
  int on_two(const std::string& path, const std::string& other, const char* name) {
    put("other_at", other);
    return on(path, name);
  }
  fs::path inside() const { return folder_.path() / "inside"; }

  TestFolder folder_;
  std::unique_ptr<Instance> guest_;
};

TEST_F(Files, AreReadWrittenAppendedAndSought) {
  EXPECT_EQ(on("/data/a.txt", "read_path"), 5);
  EXPECT_EQ(data(5), "hello");
  EXPECT_EQ(on("/data/none.txt", "read_path"), code(Errno::kNoent));
  put("data_at", "written by the guest");
  EXPECT_EQ(on("/data/new.txt", "write_path", {20}), 20);
  EXPECT_EQ(text_of(inside() / "new.txt"), "written by the guest");
  EXPECT_EQ(on("/data/new.txt", "append_path", {7}), 7);
  EXPECT_EQ(text_of(inside() / "new.txt"), "written by the guestwritten");
  EXPECT_EQ(on("/data/new.txt", "write_path", {3}), 3) << "truncates";
  EXPECT_EQ(text_of(inside() / "new.txt"), "wri");
  EXPECT_EQ(on("/data/seek.bin", "seek_path"), 1);
  EXPECT_EQ(on("/data/a.txt", "truncate_path", {2}), 0);
  EXPECT_EQ(text_of(inside() / "a.txt"), "he");
  EXPECT_EQ(on("/data/a.txt", "size_of_path", {1}), 2);
}

TEST_F(Files, FoldersAreMadeListedRenamedAndRemoved) {
  EXPECT_EQ(on("/data/made", "make_folder"), 0);
  EXPECT_EQ(on("/data/made", "make_folder"), code(Errno::kExist));
  EXPECT_EQ(on("/data", "list_path"), 5);
  EXPECT_EQ(data(22), ".|..|a.txt|made|sub|" + std::string(2, '\0'));
  EXPECT_EQ(on_two("/data/a.txt", "/data/made/b.txt", "rename_path"), 0);
  EXPECT_EQ(text_of(inside() / "made/b.txt"), "hello");
  EXPECT_EQ(on("/data/made", "remove_folder"), code(Errno::kNotempty));
  EXPECT_EQ(on_two("/data/made/b.txt", "/data/c.txt", "link_path"), 0);
  EXPECT_EQ(on("/data/made/b.txt", "remove_file"), 0);
  EXPECT_EQ(on("/data/made", "remove_folder"), 0);
  EXPECT_EQ(text_of(inside() / "c.txt"), "hello");
  EXPECT_FALSE(fs::exists(inside() / "made"));
}

TEST_F(Files, LongListingsCrossTheBufferWhole) {
  for (int i = 0; i < 700; ++i) std::ofstream(inside() / ("sub/file_with_a_long_name_" + std::to_string(i)));
  EXPECT_EQ(on("/data/sub", "list_path"), 702);
}

TEST_F(Files, OpenOnesAreNamed) {
  EXPECT_TRUE(guest_->open_files().empty());
  const int fd = on("/data/a.txt", "open_and_keep");
  ASSERT_GT(fd, 3);
  EXPECT_EQ(guest_->open_files(), std::vector<std::string>{"/data/a.txt"});
  EXPECT_EQ(call("close_kept", {static_cast<uint64_t>(fd)}), 0);
  EXPECT_TRUE(guest_->open_files().empty());
}

TEST_F(Files, NoPathLeavesTheFolder) {
  fs::create_symlink("../secret.txt", inside() / "up_link");
  fs::create_symlink((folder_.path() / "secret.txt").string(), inside() / "absolute_link");
  fs::create_symlink("..", inside() / "folder_link");
  fs::create_symlink("sub/../../secret.txt", inside() / "winding_link");
  fs::create_symlink("loop_b", inside() / "loop_a");
  fs::create_symlink("loop_a", inside() / "loop_b");
  for (const char* path :
       {"/data/../secret.txt", "/data/sub/../../secret.txt", "/data/up_link", "/data/absolute_link",
        "/data/folder_link/secret.txt", "/data/winding_link", "/data/./././../secret.txt", "/data/loop_a",
        "/data/sub/../../inside/../secret.txt", "/etc/passwd", "/secret.txt"}) {
    const int result = on(path, "read_path");
    EXPECT_LT(result, 0) << path << " gave " << (result > 0 ? data(result) : "");
    EXPECT_LT(on(path, "truncate_path", {0}), 0) << path;
    put("data_at", "overwritten");
    EXPECT_LT(on(path, "write_path", {5}), 0) << path;
  }
  EXPECT_LT(on("/data/folder_link/new", "make_folder"), 0);
  EXPECT_LT(on("/data/../inside2", "make_folder"), 0);
  EXPECT_LT(on("/data/folder_link/secret.txt", "remove_file"), 0);
  EXPECT_LT(on_two("/data/folder_link/secret.txt", "/data/stolen", "rename_path"), 0);
  EXPECT_LT(on_two("/data/folder_link/secret.txt", "/data/stolen", "link_path"), 0);
  EXPECT_LT(on_two("/data/a.txt", "/data/../moved", "rename_path"), 0);
  EXPECT_LT(on("/data/folder_link", "list_path"), 0);
  EXPECT_LT(on("/data/up_link", "size_of_path", {1}), 0);
  EXPECT_EQ(on("/data/up_link", "size_of_path", {0}), 1000000) << "the link itself may be seen";
  EXPECT_EQ(text_of(folder_.path() / "secret.txt"), "secret");
  EXPECT_FALSE(fs::exists(inside() / "stolen"));
  EXPECT_FALSE(fs::exists(folder_.path() / "moved"));
}

TEST_F(Files, LinksThatStayInsideAreFollowed) {
  fs::create_symlink("../a.txt", inside() / "sub/to_a");
  fs::create_symlink("sub", inside() / "to_sub");
  EXPECT_EQ(on("/data/sub/to_a", "read_path"), 5);
  EXPECT_EQ(on("/data/to_sub/to_a", "read_path"), 5);
  EXPECT_EQ(on_two("a.txt", "/data/made_link", "symlink_path"), 0);
  EXPECT_EQ(on("/data/made_link", "read_path"), 5);
  EXPECT_EQ(on("/data/made_link", "read_link"), 5);
  EXPECT_LT(on_two("/etc/passwd", "/data/absolute", "symlink_path"), 0);
}

TEST_F(Files, PipesAndDevicesAreNotOpened) {
  ASSERT_EQ(mkfifo((inside() / "pipe").c_str(), 0600), 0);
  EXPECT_LT(on("/data/pipe", "read_path"), 0);
}

TEST_F(Files, AReadOnlyFolderIsOnlyRead) {
  start(false);
  EXPECT_EQ(on("/data/a.txt", "read_path"), 5);
  EXPECT_GT(on("/data", "list_path"), 2);
  EXPECT_EQ(on("/data/a.txt", "size_of_path", {1}), 5);
  put("data_at", "x");
  EXPECT_EQ(on("/data/a.txt", "write_path", {1}), code(Errno::kAccess));
  EXPECT_EQ(on("/data/new.txt", "write_path", {1}), code(Errno::kAccess));
  EXPECT_LT(on("/data/a.txt", "append_path", {1}), 0);
  EXPECT_LT(on("/data/a.txt", "truncate_path", {0}), 0);
  EXPECT_LT(on("/data/made", "make_folder"), 0);
  EXPECT_LT(on("/data/sub", "remove_folder"), 0);
  EXPECT_LT(on("/data/a.txt", "remove_file"), 0);
  EXPECT_LT(on_two("/data/a.txt", "/data/b.txt", "rename_path"), 0);
  EXPECT_LT(on_two("/data/a.txt", "/data/b.txt", "link_path"), 0);
  EXPECT_LT(on_two("a.txt", "/data/b.txt", "symlink_path"), 0);
  EXPECT_EQ(text_of(inside() / "a.txt"), "hello");
  EXPECT_EQ(std::distance(fs::directory_iterator(inside()), fs::directory_iterator()), 2);
}

TEST(Command, PrintsToItsSinksAndExits) {
  static const std::shared_ptr<Module> module = guest_module("wasm_command");
  std::string out;
  std::string err;
  InstanceOptions options;
  options.wasi.args = {"program", "one", "two"};
  options.wasi.env = {{"HOME", "/here"}};
  options.wasi.stdout_sink = [&](std::string_view text) { out += text; return true; };
  options.wasi.stderr_sink = [&](std::string_view text) { err += text; return true; };
  auto instance = shared_runtime().instantiate(module, {}, options);
  ASSERT_TRUE(instance.is_ok()) << instance.status().to_string();
  EXPECT_EQ((*instance)->call("_start", {}).status().code(), Code::kAborted);
  EXPECT_EQ((*instance)->exit_code(), 3);
  EXPECT_EQ(out, "program\none\ntwo\n");
  EXPECT_EQ(err, "HOME=/here\n");
  options.wasi.args = {"program"};
  auto quiet = shared_runtime().instantiate(module, {}, options);
  ASSERT_TRUE(quiet.is_ok());
  EXPECT_TRUE((*quiet)->call("_start", {}).is_ok());
}

}  // namespace
}  // namespace driftwood::wasm
