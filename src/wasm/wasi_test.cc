// WASI preview 1: what each group of functions does, called straight from a forwarding guest.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "wasm/wasi/wasi_for_test.h"

namespace driftwood::wasm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(Wasi, EveryFunctionOfPreview1IsThereOnce) {
  EXPECT_EQ(wasi_functions().size(), 46u);
  std::vector<std::string> names;
  for (const HostImport& f : wasi_functions()) names.push_back(f.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Wasi, NothingIsGrantedByDefault) {
  auto guest = wasi_forwarder();
  EXPECT_EQ(wasi_call(*guest, "args_sizes_get", {0, 4}), Errno::kSuccess);
  EXPECT_EQ(u32_at(*guest, 0), 0u);
  EXPECT_EQ(wasi_call(*guest, "environ_sizes_get", {0, 4}), Errno::kSuccess);
  EXPECT_EQ(u32_at(*guest, 0), 0u);
  EXPECT_EQ(wasi_call(*guest, "fd_prestat_get", {3, 0}), Errno::kBadf);
  put_text(*guest, 100, "etc/passwd");
  for (const uint64_t fd : {0, 1, 2, 3, 4}) {
    const Errno error =
        wasi_call(*guest, "path_open", {fd, 1, 100, 10, 0, rights::kFdRead, 0, 0, 0});
    EXPECT_EQ(error, fd < 3 ? Errno::kNotdir : Errno::kBadf);
  }
  for (const char* name : {"sock_shutdown"}) EXPECT_EQ(wasi_call(*guest, name, {1, 2}), Errno::kNotsup);
  EXPECT_EQ(wasi_call(*guest, "sock_accept", {1, 0, 0}), Errno::kNotsup);
  EXPECT_EQ(wasi_call(*guest, "proc_raise", {9}), Errno::kNotsup);
}

TEST(Wasi, ArgumentsAndEnvironmentArriveTerminated) {
  InstanceOptions options;
  options.wasi.args = {"program", "", "last"};
  options.wasi.env = {{"HOME", "/nowhere"}};
  auto guest = wasi_forwarder(options);
  ASSERT_EQ(wasi_call(*guest, "args_sizes_get", {0, 4}), Errno::kSuccess);
  EXPECT_EQ(u32_at(*guest, 0), 3u);
  EXPECT_EQ(u32_at(*guest, 4), 14u);
  ASSERT_EQ(wasi_call(*guest, "args_get", {16, 64}), Errno::kSuccess);
  EXPECT_STREQ(reinterpret_cast<char*>(guest->bytes(u32_at(*guest, 16), 1)), "program");
  EXPECT_STREQ(reinterpret_cast<char*>(guest->bytes(u32_at(*guest, 24), 1)), "last");
  ASSERT_EQ(wasi_call(*guest, "environ_get", {16, 64}), Errno::kSuccess);
  EXPECT_STREQ(reinterpret_cast<char*>(guest->bytes(u32_at(*guest, 16), 1)), "HOME=/nowhere");
}

TEST(Wasi, ClockAndRandomComeFromTheirFunctions) {
  InstanceOptions options;
  options.wasi.clock_ns = [](uint32_t id) { return 1000u + id; };
  options.wasi.random_bytes = [](std::span<uint8_t> bytes) { std::fill(bytes.begin(), bytes.end(), 0x5a); };
  auto guest = wasi_forwarder(options);
  ASSERT_EQ(wasi_call(*guest, "clock_time_get", {1, 0, 8}), Errno::kSuccess);
  EXPECT_EQ(u32_at(*guest, 8), 1001u);
  EXPECT_EQ(wasi_call(*guest, "clock_time_get", {4, 0, 8}), Errno::kInval);
  ASSERT_EQ(wasi_call(*guest, "random_get", {32, 4}), Errno::kSuccess);
  EXPECT_EQ(u32_at(*guest, 32), 0x5a5a5a5au);
  EXPECT_EQ(u32_at(*guest, 36), 0u);
  auto real = wasi_forwarder();
  ASSERT_EQ(wasi_call(*real, "random_get", {0, 8}), Errno::kSuccess);
  ASSERT_EQ(wasi_call(*real, "random_get", {8, 8}), Errno::kSuccess);
  EXPECT_NE(std::memcmp(real->bytes(0, 8), real->bytes(8, 8), 8), 0);
}

TEST(Wasi, StandardStreamsGoToTheirSinks) {
  std::string out;
  std::string err;
  InstanceOptions options;
  options.wasi.stdout_sink = [&](std::string_view text) { out += text; return true; };
  options.wasi.stderr_sink = [&](std::string_view text) { err += text; return true; };
  auto guest = wasi_forwarder(options);
  put_text(*guest, 100, "hello world");
  put_u32(*guest, 0, 100);
  put_u32(*guest, 4, 5);
  put_u32(*guest, 8, 105);
  put_u32(*guest, 12, 6);
  ASSERT_EQ(wasi_call(*guest, "fd_write", {1, 0, 2, 40}), Errno::kSuccess);
  EXPECT_EQ(u32_at(*guest, 40), 11u);
  ASSERT_EQ(wasi_call(*guest, "fd_write", {2, 0, 1, 40}), Errno::kSuccess);
  EXPECT_EQ(out, "hello world");
  EXPECT_EQ(err, "hello");
  ASSERT_EQ(wasi_call(*guest, "fd_read", {0, 0, 1, 40}), Errno::kSuccess);
  EXPECT_EQ(u32_at(*guest, 40), 0u) << "stdin is at its end";
  EXPECT_EQ(wasi_call(*guest, "fd_seek", {1, 0, 0, 40}), Errno::kSpipe);
  EXPECT_EQ(wasi_call(*guest, "fd_read", {1, 0, 1, 40}), Errno::kNotcapable);
  auto dropped = wasi_forwarder();
  EXPECT_EQ(wasi_call(*dropped, "fd_write", {1, 0, 0, 40}), Errno::kSuccess);
  ASSERT_EQ(wasi_call(*dropped, "fd_close", {1}), Errno::kSuccess);
  EXPECT_EQ(wasi_call(*dropped, "fd_write", {1, 0, 0, 40}), Errno::kBadf);
}

TEST(Wasi, ProcExitEndsTheInstanceWithItsCode) {
  auto guest = wasi_forwarder();
  EXPECT_EQ(guest->exit_code(), -1);
  const Status failed = guest->call("proc_exit", std::vector<uint64_t>{7}).status();
  EXPECT_EQ(failed.code(), Code::kAborted);
  EXPECT_TRUE(mentions(failed, "exited with code 7")) << failed.message();
  EXPECT_EQ(guest->exit_code(), 7);
  EXPECT_FALSE(guest->alive());
  auto clean = wasi_forwarder();
  EXPECT_TRUE(clean->call("proc_exit", std::vector<uint64_t>{0}).is_ok());
  EXPECT_EQ(clean->exit_code(), 0);
  EXPECT_FALSE(clean->alive());
}

// A clock subscription at 0 with its result at 100.
void put_clock(Instance& guest, uint64_t timeout_ns, uint16_t flags) {
  std::memset(guest.bytes(0, 48), 0, 48);
  const uint64_t userdata = 77;
  const uint32_t monotonic = 1;
  std::memcpy(guest.bytes(0, 8), &userdata, 8);
  std::memcpy(guest.bytes(16, 4), &monotonic, 4);
  std::memcpy(guest.bytes(24, 8), &timeout_ns, 8);
  std::memcpy(guest.bytes(40, 2), &flags, 2);
}

TEST(Wasi, PollWaitsForAClockAndReportsIt) {
  auto guest = wasi_forwarder();
  put_clock(*guest, 30'000'000, 0);
  const auto begin = steady_clock::now();
  ASSERT_EQ(wasi_call(*guest, "poll_oneoff", {0, 100, 1, 200}), Errno::kSuccess);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(30));
  EXPECT_EQ(u32_at(*guest, 200), 1u);
  EXPECT_EQ(u32_at(*guest, 100), 77u);
  put_clock(*guest, 1, 1);  // an absolute time long gone
  const auto again = steady_clock::now();
  ASSERT_EQ(wasi_call(*guest, "poll_oneoff", {0, 100, 1, 200}), Errno::kSuccess);
  EXPECT_LT(steady_clock::now() - again, milliseconds(1000));
  EXPECT_EQ(wasi_call(*guest, "poll_oneoff", {0, 100, 0, 200}), Errno::kInval);
}

TEST(Wasi, PollIsBoundedByTheDeadline) {
  InstanceOptions options;
  options.call_deadline = milliseconds(50);
  auto guest = wasi_forwarder(options);
  put_clock(*guest, UINT64_MAX, 0);
  const auto begin = steady_clock::now();
  const Status status = guest->call("poll_oneoff", std::vector<uint64_t>{0, 100, 1, 200}).status();
  EXPECT_LT(steady_clock::now() - begin, milliseconds(5000));
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.to_string();
}

TEST(Wasi, AFolderThatCannotBeOpenedIsNamed) {
  InstanceOptions options;
  options.wasi.folders = {{"/data", "/no/such/folder", false}};
  auto instance = instance_of("(module)", options);
  EXPECT_EQ(instance.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(mentions(instance.status(), "/no/such/folder")) << instance.status().message();
}

TEST(Wasi, DescriptorsAreFewAndCanBeRenumbered) {
  TestFolder folder;
  std::ofstream(folder.path() / "f") << "text";
  InstanceOptions options;
  options.wasi.folders = {{"/", folder.path().string(), false}};
  auto guest = wasi_forwarder(options);
  put_text(*guest, 0, "f");
  std::vector<uint32_t> open;
  Errno error = Errno::kSuccess;
  for (int i = 0; i < 300 && error == Errno::kSuccess; ++i) {
    error = wasi_call(*guest, "path_open", {3, 1, 0, 1, 0, rights::kFdRead, 0, 0, 16});
    if (error == Errno::kSuccess) open.push_back(u32_at(*guest, 16));
  }
  EXPECT_EQ(error, Errno::kMfile);
  EXPECT_EQ(open.size(), kMaxDescriptors - 4);
  EXPECT_EQ(guest->open_files().size(), open.size());
  EXPECT_EQ(guest->open_files().front(), "/f");
  ASSERT_EQ(wasi_call(*guest, "fd_renumber", {5, 4}), Errno::kSuccess);
  EXPECT_EQ(wasi_call(*guest, "fd_tell", {5, 16}), Errno::kBadf);
  EXPECT_EQ(wasi_call(*guest, "fd_renumber", {4, 9999}), Errno::kBadf);
  for (const uint32_t fd : open) {
    const Errno expected = fd == 5 ? Errno::kBadf : Errno::kSuccess;
    EXPECT_EQ(wasi_call(*guest, "fd_close", {fd}), expected);
  }
  EXPECT_TRUE(guest->open_files().empty());
}

}  // namespace
}  // namespace driftwood::wasm
