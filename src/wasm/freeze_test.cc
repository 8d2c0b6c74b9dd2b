// A guest that is frozen, destroyed and restored goes on as if nothing had happened: here and in a new
// process.
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "region/region.h"
#include "wasm/freeze_for_test.h"

extern char** environ;

namespace driftwood::wasm {
namespace {

namespace fs = std::filesystem;

constexpr int kStepsBefore = 37;
constexpr int kStepsAfter = 200;
constexpr char kStateVariable[] = "DW_TEST_FROZEN_STATE";

class FrozenGuest : public testing::TestWithParam<bool> {
 protected:
  static std::shared_ptr<Module> module() { return GetParam() ? freezing_c_module() : stateful_module(); }
  static std::unique_ptr<Instance> fresh() {
    return std::move(shared_runtime().instantiate(module(), {}, {})).value();
  }
};
std::string guest_name(const testing::TestParamInfo<bool>& info) { return info.param ? "C" : "Text"; }
INSTANTIATE_TEST_SUITE_P(Guests, FrozenGuest, testing::Bool(), guest_name);

TEST_P(FrozenGuest, GoesOnAsTheOriginalWould) {
  auto original = fresh();
  run_steps(*original, kStepsBefore);
  ASSERT_TRUE(original->can_freeze().is_ok()) << original->can_freeze().to_string();
  const Frozen frozen(*original);
  const Steps expected = run_steps(*original, kStepsAfter);
  original.reset();
  auto restored = frozen.restore(module());
  ASSERT_TRUE(restored.is_ok()) << restored.status().to_string();
  EXPECT_EQ(memory_of(**restored), frozen.bytes());
  EXPECT_EQ((*restored)->globals().value(), frozen.globals());
  EXPECT_EQ((*restored)->wasmtime_memory_base(), (*restored)->memory().base());
  const Steps run = run_steps(**restored, kStepsAfter);
  EXPECT_EQ(run.results, expected.results);
  EXPECT_EQ(run.globals, expected.globals);
  EXPECT_TRUE(run.memory == expected.memory);
  EXPECT_TRUE(frozen.file_is_unchanged());
}

TEST_P(FrozenGuest, AtEveryRestPointIncludingTheFirst) {
  auto original = fresh();
  for (int i = 0; i < 12; ++i) {
    const Frozen frozen(*original);
    auto restored = frozen.restore(module());
    ASSERT_TRUE(restored.is_ok()) << restored.status().to_string();
    const Steps expected = run_steps(*original, 1);
    EXPECT_TRUE(run_steps(**restored, 1) == expected) << "after " << i << " steps";
  }
}

TEST_P(FrozenGuest, TwoRestoresOfOneFileAreIndependent) {
  auto original = fresh();
  run_steps(*original, kStepsBefore);
  const Frozen frozen(*original);
  const Steps expected = run_steps(*original, kStepsAfter);
  auto first = std::move(frozen.restore(module())).value();
  auto second = std::move(frozen.restore(module())).value();
  EXPECT_NE(first->memory().base(), second->memory().base());
  EXPECT_TRUE(run_steps(*first, kStepsAfter) == expected);
  EXPECT_EQ(memory_of(*second), frozen.bytes()) << "the other's steps show";
  first.reset();
  EXPECT_TRUE(run_steps(*second, kStepsAfter) == expected);
  EXPECT_TRUE(frozen.file_is_unchanged());
}

TEST_P(FrozenGuest, ARestoredGuestCanBeFrozenAgain) {
  auto original = fresh();
  std::unique_ptr<Instance> relay = fresh();
  for (int generation = 0; generation < 10; ++generation) {
    const Steps expected = run_steps(*original, 7);
    ASSERT_TRUE(run_steps(*relay, 7) == expected) << generation;
    const Frozen frozen(*relay);
    relay = std::move(frozen.restore(module())).value();
  }
}

TEST_P(FrozenGuest, OnlyTheWrittenPagesAreDirty) {
  auto original = fresh();
  run_steps(*original, kStepsBefore);
  const Frozen frozen(*original);
  auto restored = std::move(frozen.restore(module())).value();
  auto dirty = restored->memory().dirty_pages();
  if (!dirty.is_ok()) GTEST_SKIP() << dirty.status().to_string();
  EXPECT_TRUE(dirty->empty()) << "a restore writes no page";
  run_steps(*restored, 3);
  dirty = restored->memory().dirty_pages();
  ASSERT_TRUE(dirty.is_ok());
  // The base and the dirty pages together are the memory: what a second snapshot and a fork rely on.
  std::vector<uint8_t> rebuilt = frozen.bytes();
  size_t written = 0;
  rebuilt.resize(restored->memory_bytes());
  for (const region::ByteRange& range : *dirty) {
    std::memcpy(rebuilt.data() + range.offset, restored->memory().base() + range.offset, range.length);
    written += range.length;
  }
  EXPECT_TRUE(rebuilt == memory_of(*restored));
  EXPECT_GT(written, 0u);
  EXPECT_LT(written, rebuilt.size() / 2);
}

// The state by name: "index type bits high_bits" a line; the memory stays in the image's file.
void write_globals(const fs::path& path, const std::vector<GlobalValue>& globals) {
  std::ofstream out(path);
  for (const GlobalValue& g : globals) {
    out << g.index << ' ' << static_cast<int>(g.type) << ' ' << g.bits << ' ' << g.high_bits << '\n';
  }
}

std::vector<GlobalValue> read_globals(const fs::path& path) {
  std::ifstream in(path);
  std::vector<GlobalValue> globals;
  GlobalValue g;
  int type = 0;
  while (in >> g.index >> type >> g.bits >> g.high_bits) {
    g.type = static_cast<GlobalType>(type);
    globals.push_back(g);
  }
  return globals;
}

void write_run(const fs::path& stem, const Steps& run) {
  std::ofstream results(stem.string() + ".results");
  for (const uint64_t result : run.results) results << result << '\n';
  write_globals(stem.string() + ".globals", run.globals);
  std::ofstream memory(stem.string() + ".memory", std::ios::binary);
  memory.write(reinterpret_cast<const char*>(run.memory.data()),
               static_cast<std::streamsize>(run.memory.size()));
}

Steps read_run(const fs::path& stem) {
  Steps run;
  std::ifstream results(stem.string() + ".results");
  for (uint64_t result = 0; results >> result;) run.results.push_back(result);
  run.globals = read_globals(stem.string() + ".globals");
  std::ifstream memory(stem.string() + ".memory", std::ios::binary);
  run.memory.assign(std::istreambuf_iterator<char>(memory), {});
  return run;
}

// The other process's side of the test below, which runs it by name: "KIND IMAGE_FILE STEM" is in the
// environment.
TEST(FrozenGuestElsewhere, DISABLED_GoesOnInThisProcess) {
  const char* state = getenv(kStateVariable);
  ASSERT_NE(state, nullptr);
  std::istringstream words(state);
  std::string kind;
  std::string image_path;
  std::string stem;
  words >> kind >> image_path >> stem;
  const int fd = open(image_path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  FrozenMemory memory;
  memory.image.pieces = {{fd, Frozen::kOffset, fs::file_size(image_path) - Frozen::kOffset}};
  const std::vector<GlobalValue> globals = read_globals(stem + ".saved");
  auto module = kind == "C" ? freezing_c_module() : stateful_module();
  auto restored = shared_runtime().restore(module, {}, {}, memory, globals);
  close(fd);
  ASSERT_TRUE(restored.is_ok()) << restored.status().to_string();
  write_run(stem, run_steps(**restored, kStepsAfter));
}

int run_elsewhere(const std::string& state) {
  setenv(kStateVariable, state.c_str(), 1);
  std::string program = fs::read_symlink("/proc/self/exe").string();
  std::string filter = "--gtest_filter=FrozenGuestElsewhere.*";
  std::string disabled = "--gtest_also_run_disabled_tests";
  char* arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
  pid_t child = 0;
  int outcome = -1;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) == 0)
    waitpid(child, &outcome, 0);
  unsetenv(kStateVariable);
  return outcome;
}

TEST_P(FrozenGuest, GoesOnInANewProcess) {
  if (!fs::exists("/proc/self/exe")) GTEST_SKIP() << "this system does not name the running program";
  auto original = fresh();
  run_steps(*original, kStepsBefore);
  const Frozen frozen(*original);
  const Steps expected = run_steps(*original, kStepsAfter);
  original.reset();
  const std::string stem = frozen.path() + ".run";
  write_globals(stem + ".saved", frozen.globals());
  ASSERT_EQ(run_elsewhere(std::string(GetParam() ? "C " : "Text ") + frozen.path() + " " + stem), 0);
  const Steps run = read_run(stem);
  EXPECT_EQ(run.results, expected.results);
  EXPECT_EQ(run.globals, expected.globals);
  EXPECT_TRUE(run.memory == expected.memory);
  EXPECT_TRUE(frozen.file_is_unchanged());
  for (const char* ending : {".saved", ".results", ".globals", ".memory"}) fs::remove(stem + ending);
}

}  // namespace
}  // namespace driftwood::wasm
