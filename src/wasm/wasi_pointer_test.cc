// Wild and wrapping pointers to every WASI call: EFAULT where the pointer is looked at, never a trap or a crash.
#include <gtest/gtest.h>

#include <fstream>

#include "wasm/wasi/wasi_for_test.h"

namespace driftwood::wasm {
namespace {

constexpr uint32_t kSize = 65536;
constexpr uint32_t kFile = 4;    // opened by the set-up
constexpr uint32_t kFolder = 3;  // granted
constexpr uint32_t kPath = 1024, kPathBytes = 5;
constexpr uint32_t kVec = 2048;  // one iovec: 16 bytes at 4096
constexpr uint32_t kOut = 8192;

struct OpenFile {
  TestFolder folder;
  std::unique_ptr<Instance> guest;

  explicit OpenFile(std::chrono::milliseconds deadline = std::chrono::milliseconds(5000)) {
    std::ofstream(folder.path() / "a.txt") << "some text of a file";
    InstanceOptions options;
    options.call_deadline = deadline;
    options.wasi.args = {"program", "argument"};
    options.wasi.env = {{"NAME", "value"}};
    options.wasi.folders = {{"/data", folder.path().string(), true}};
    guest = wasi_forwarder(std::move(options));
    prepare();
  }
  void prepare() {
    put_text(*guest, kPath, "a.txt");
    put_u32(*guest, kVec, 4096);
    put_u32(*guest, kVec + 4, 16);
    EXPECT_EQ(wasi_call(*guest, "path_open", {kFolder, 1, kPath, kPathBytes, 0, rights::kAll, rights::kAll, 0, kOut}),
              Errno::kSuccess);
    EXPECT_EQ(u32_at(*guest, kOut), kFile);
  }
};

// Good arguments of a call, and which of them are pointers.
struct Call {
  const char* name;
  std::vector<uint64_t> args;
  std::vector<size_t> pointers;
};

const std::vector<Call>& calls() {
  static const std::vector<Call> list = {
      {"args_get", {kOut, kOut + 100}, {0, 1}},
      {"args_sizes_get", {kOut, kOut + 4}, {0, 1}},
      {"environ_get", {kOut, kOut + 100}, {0, 1}},
      {"environ_sizes_get", {kOut, kOut + 4}, {0, 1}},
      {"clock_res_get", {0, kOut}, {1}},
      {"clock_time_get", {0, 1, kOut}, {2}},
      {"fd_fdstat_get", {kFile, kOut}, {1}},
      {"fd_filestat_get", {kFile, kOut}, {1}},
      {"fd_pread", {kFile, kVec, 1, 0, kOut}, {1, 4}},
      {"fd_prestat_get", {kFolder, kOut}, {1}},
      {"fd_prestat_dir_name", {kFolder, kOut, 5}, {1}},
      {"fd_pwrite", {kFile, kVec, 1, 0, kOut}, {1, 4}},
      {"fd_read", {kFile, kVec, 1, kOut}, {1, 3}},
      {"fd_readdir", {kFolder, kOut, 100, 0, kOut + 200}, {1, 4}},
      {"fd_seek", {kFile, 0, 0, kOut}, {3}},
      {"fd_tell", {kFile, kOut}, {1}},
      {"fd_write", {kFile, kVec, 1, kOut}, {1, 3}},
      {"path_create_directory", {kFolder, kPath, kPathBytes}, {1}},
      {"path_filestat_get", {kFolder, 1, kPath, kPathBytes, kOut}, {2, 4}},
      {"path_filestat_set_times", {kFolder, 1, kPath, kPathBytes, 0, 0, 0}, {2}},
      {"path_link", {kFolder, 0, kPath, kPathBytes, kFolder, kPath, kPathBytes}, {2, 5}},
      {"path_open", {kFolder, 1, kPath, kPathBytes, 0, rights::kFdRead, 0, 0, kOut}, {2, 8}},
      {"path_readlink", {kFolder, kPath, kPathBytes, kOut, 100, kOut + 200}, {1, 3, 5}},
      {"path_remove_directory", {kFolder, kPath, kPathBytes}, {1}},
      {"path_rename", {kFolder, kPath, kPathBytes, kFolder, kPath, kPathBytes}, {1, 4}},
      {"path_symlink", {kPath, kPathBytes, kFolder, kPath, kPathBytes}, {0, 3}},
      {"path_unlink_file", {kFolder, kPath, kPathBytes}, {1}},
      {"poll_oneoff", {20000, 30000, 1, kOut}, {0, 1, 3}},
      {"random_get", {kOut, 32}, {0}},
  };
  return list;
}

TEST(WasiPointers, EachBadPointerIsEfault) {
  OpenFile setup;
  for (const Call& call : calls()) {
    for (const size_t position : call.pointers) {
      for (const uint64_t bad : {uint64_t{0xffffffff}, uint64_t{0xfffffffc}, uint64_t{kSize}, uint64_t{kSize - 1},
                                 uint64_t{0x80000000}}) {
        std::vector<uint64_t> args = call.args;
        args[position] = bad;
        EXPECT_EQ(wasi_call(*setup.guest, call.name, args), Errno::kFault)
            << call.name << " argument " << position << " = " << bad;
      }
    }
  }
}

TEST(WasiPointers, LengthsThatWrapAroundAreEfault) {
  OpenFile setup;
  Instance& guest = *setup.guest;
  for (const uint64_t length : {uint64_t{0xffffffff}, uint64_t{0xfffffc00}, uint64_t{kSize}}) {
    EXPECT_EQ(wasi_call(guest, "random_get", {kOut, length}), Errno::kFault);
    EXPECT_EQ(wasi_call(guest, "fd_prestat_dir_name", {kFolder, kOut, length}), Errno::kFault);
    EXPECT_EQ(wasi_call(guest, "fd_readdir", {kFolder, kOut, length, 0, kOut}), Errno::kFault);
    EXPECT_EQ(wasi_call(guest, "path_unlink_file", {kFolder, kPath, length}), Errno::kFault);
  }
  put_u32(guest, kVec + 4, 0xffffffff);  // an iovec whose end wraps
  EXPECT_EQ(wasi_call(guest, "fd_write", {1, kVec, 1, kOut}), Errno::kFault);
  EXPECT_EQ(wasi_call(guest, "fd_read", {kFile, kVec, 1, kOut}), Errno::kFault);
  put_u32(guest, kVec + 4, 16);
  EXPECT_EQ(wasi_call(guest, "fd_write", {1, kVec, 0x20000000, kOut}), Errno::kInval);
  EXPECT_EQ(wasi_call(guest, "fd_write", {1, kSize - 16, 3, kOut}), Errno::kFault);
  EXPECT_EQ(wasi_call(guest, "poll_oneoff", {0, 0, 0xffffffff, kOut}), Errno::kInval);
}

TEST(WasiPointers, ABadSecondBufferMovesNothing) {
  OpenFile setup;
  Instance& guest = *setup.guest;
  put_u32(guest, kVec + 8, 0xfffffff0);
  put_u32(guest, kVec + 12, 64);
  EXPECT_EQ(wasi_call(guest, "fd_write", {kFile, kVec, 2, kOut}), Errno::kFault);
  EXPECT_EQ(std::filesystem::file_size(setup.folder.path() / "a.txt"), 19u);
  EXPECT_EQ(wasi_call(guest, "fd_tell", {kFile, kOut}), Errno::kSuccess);
  EXPECT_EQ(u32_at(guest, kOut), 0u);
}

// Whatever the arguments: a known error code or a clean end, and the folder's outside stays as it was.
TEST(WasiPointers, RandomArgumentsNeverBreakTheHost) {
  uint64_t counter = 0;
  const auto draw = [&counter](uint64_t below) {
    uint64_t x = ++counter * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return (x ^ (x >> 31)) % below;
  };
  const uint64_t interesting[] = {0,      1,     2,     3,      4,          5,          16,         kPath,       kVec,
                                  kOut,   kSize, 65535, 65528,  0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff8,  100,
                                  20000,  ~0ull, 1ull << 63, 1ull << 40, 7, 8,          15,         64,          4096};
  std::unique_ptr<OpenFile> setup;
  for (int i = 0; i < 40000; ++i) {
    if (setup == nullptr || !setup->guest->alive() || i % 4000 == 0) {
      setup = std::make_unique<OpenFile>(std::chrono::milliseconds(20));
    }
    const HostImport& function = wasi_functions()[draw(wasi_functions().size())];
    std::vector<uint64_t> args;
    for (size_t a = 0; a < function.signature.params.size(); ++a) args.push_back(interesting[draw(std::size(interesting))]);
    if (function.name == "proc_exit" && i % 50 != 0) continue;
    auto result = setup->guest->call(function.name, args);
    if (result.is_ok() && !function.signature.results.empty()) {
      ASSERT_LE(result->at(0), static_cast<uint64_t>(Errno::kNotcapable)) << function.name;
    } else if (!result.is_ok()) {
      ASSERT_TRUE(result.status().code() == Code::kDeadlineExceeded || function.name == "proc_exit")
          << function.name << ": " << result.status().to_string();
    }
  }
}

}  // namespace
}  // namespace driftwood::wasm
