// What the tests of freezing share: two guests, a frozen state in a file, and a run whose every result
// counts.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "wasm/guest_for_test.h"

namespace driftwood::wasm {

// State in globals of every type and in memory; the start function and _initialize count their runs at 100
// and 104.
inline constexpr char kStatefulGuest[] = R"((module
  (memory (export "memory") 2 16)
  (global $i (mut i32) (i32.const 3))
  (global $fixed i32 (i32.const 7))
  (global $l (export "named") (mut i64) (i64.const -5))
  (global $f (mut f32) (f32.const 0.25))
  (global $d (mut f64) (f64.const -0x1p-1022))
  (global $v (mut v128) (v128.const i32x4 1 2 3 4))
  (data (i32.const 16) "initial")
  (data $late "late")
  (func $count (param i32) (i32.store (local.get 0) (i32.add (i32.load (local.get 0)) (i32.const 1))))
  (func $start (call $count (i32.const 100)))
  (start $start)
  (func (export "_initialize") (call $count (i32.const 104)))
  (func (export "step") (result i64)
    (global.set $i (i32.add (global.get $i) (global.get $fixed)))
    (global.set $l (i64.add (i64.mul (global.get $l) (i64.const 6364136223846793005)) (i64.const 1442695040888963407)))
    (global.set $f (f32.add (f32.mul (global.get $f) (f32.const 0.75))
                            (f32.convert_i64_s (i64.shr_s (global.get $l) (i64.const 40)))))
    (global.set $d (f64.sqrt (f64.add (f64.abs (global.get $d)) (f64.convert_i64_u (global.get $l)))))
    (global.set $v (i32x4.add (global.get $v) (i32x4.splat (global.get $i))))
    (i64.store (i32.and (i32.mul (global.get $i) (i32.const 264)) (i32.const 0x1ff8))
      (i64.add (i64.load (i32.const 16)) (i64.reinterpret_f64 (global.get $d))))
    (i64.xor (i64.xor (global.get $l) (i64.reinterpret_f64 (global.get $d)))
             (i64.xor (i64.extend_i32_u (i32.reinterpret_f32 (global.get $f)))
                      (i64x2.extract_lane 1 (global.get $v)))))
  (func (export "late_active") (param i32) (memory.init 0 (i32.const 200) (i32.const 0) (local.get 0)))
  (func (export "late_passive") (memory.init $late (i32.const 200) (i32.const 0) (i32.const 4)))
  (func (export "poke") (param i32 i32) (i32.store8 (local.get 0) (local.get 1)))
  (func (export "peek") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "size") (result i32) (memory.size))
  (func (export "stop") unreachable)))";

inline std::shared_ptr<Module> freezing_c_module() {
  auto module = shared_runtime().load_file(std::string(DW_GUEST_DIR) + "/wasm_freezing.wasm");
  DW_CHECK(module.is_ok(), module.status().message().c_str());
  return *module;
}

inline std::shared_ptr<Module> stateful_module() {
  static const std::shared_ptr<Module> module = std::move(load_text(kStatefulGuest)).value();
  return module;
}

inline std::unique_ptr<Instance> fresh() {
  return std::move(shared_runtime().instantiate(stateful_module(), {}, {})).value();
}

inline uint64_t call1(Instance& guest, const char* name, uint64_t argument) {
  const uint64_t args[] = {argument};
  auto result = guest.call(name, args);
  DW_CHECK(result.is_ok(), result.status().message().c_str());
  return result->empty() ? 0 : result->at(0);
}

inline size_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

inline size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

inline std::vector<uint8_t> memory_of(Instance& guest) {
  return {guest.memory().base(), guest.memory().base() + guest.memory_bytes()};
}

// A temporary file with these bytes from `offset` on.
struct TestImageFile {
  TestImageFile(std::span<const uint8_t> bytes, uint64_t offset)
      : path(testing::TempDir() + "dw_frozen_XXXXXX") {
    fd = mkstemp(path.data());
    DW_CHECK(fd >= 0, "no temporary file");
    const ssize_t size = static_cast<ssize_t>(bytes.size());
    DW_CHECK(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) == size,
             "writing a memory image");
  }
  ~TestImageFile() {
    close(fd);
    unlink(path.c_str());
  }
  TestImageFile(const TestImageFile&) = delete;
  TestImageFile& operator=(const TestImageFile&) = delete;
  std::string path;
  int fd = -1;
};

// The memory in a file of its own, from the second 64 KiB on, and the globals beside it.
class Frozen {
 public:
  static constexpr uint64_t kOffset = 65536;

  explicit Frozen(Instance& guest)
      : globals_(std::move(guest.globals()).value()),
        bytes_(memory_of(guest)),
        file_(std::make_shared<TestImageFile>(bytes_, kOffset)) {}

  MemoryImage image() const { return MemoryImage{{{fd(), kOffset, bytes_.size()}}, 0, file_}; }
  FrozenMemory memory() const { return FrozenMemory{image(), {}, nullptr}; }
  const std::vector<GlobalValue>& globals() const { return globals_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  const std::string& path() const { return file_->path; }
  int fd() const { return file_->fd; }
  bool file_is_unchanged() const {
    std::vector<uint8_t> now(bytes_.size());
    return pread(fd(), now.data(), now.size(), kOffset) == static_cast<ssize_t>(now.size()) && now == bytes_;
  }
  Result<std::unique_ptr<Instance>> restore(std::shared_ptr<Module> module,
                                            InstanceOptions options = {}) const {
    return shared_runtime().restore(std::move(module), {}, std::move(options), memory(), globals_);
  }

 private:
  std::vector<GlobalValue> globals_;
  std::vector<uint8_t> bytes_;
  std::shared_ptr<TestImageFile> file_;
};

// Every result of `count` steps, and the state that they lead to.
struct Steps {
  std::vector<uint64_t> results;
  std::vector<GlobalValue> globals;
  std::vector<uint8_t> memory;
  bool operator==(const Steps&) const = default;
};

inline Steps run_steps(Instance& guest, int count) {
  Steps run;
  for (int i = 0; i < count; ++i) {
    auto result = guest.call("step", {});
    DW_CHECK(result.is_ok(), result.status().message().c_str());
    run.results.push_back(result->at(0));
  }
  run.globals = std::move(guest.globals()).value();
  run.memory = memory_of(guest);
  return run;
}

}  // namespace driftwood::wasm
