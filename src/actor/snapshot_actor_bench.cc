// A whole actor (about 1 MB of memory, one session of the model in DRIFTWOOD_SMOLLM2) saved, restored and
// forked: the figures of docs/snapshots.md, one line of JSON each. Model and module are loaded. The store
// lies in TMPDIR.
//
//     snapshot_actor_bench [FIGURE...]   restore, first, prefill, save, fork, forks, verify, cycles, cold;
//     all without
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "actor/actor_saver.h"
#include "actor/actors_for_test.h"
#include "actor/figures_for_test.h"
#include "os/atomic_file.h"
#include "os/temporary_folder.h"
#include "snapshot/container.h"
#include "tensor/op_args.h"

namespace driftwood::actor {
namespace {

using snapshot::Store;
using snapshot::Verify;

constexpr int64_t kContexts[] = {24, 512, 4096};
constexpr int64_t kLongest = 4096;
enum Command : int32_t { kAppend = 0, kNext = 1, kWrite = 2 };

template <typename T>
T must(Result<T> result) {
  DW_CHECK(result.is_ok(), result.status().message().c_str());
  return std::move(*result);
}
void must(const Status& status) { DW_CHECK(status.is_ok(), status.message().c_str()); }

std::string name_of(int64_t tokens) { return "at-" + std::to_string(tokens); }

class Bench {
 public:
  explicit Bench(const char* path) : module_(guest("test_worker")) {
    opened_.model = must(engine::load_model(path, {}));
    engine::EngineOptions engine_options;
    engine_options.kv_budget_bytes = int64_t{1} << 30;
    opened_.engine = must(engine::Engine::create(opened_.model, &shared_device(), engine_options));
    folder_ = must(os::TemporaryFolder::create("driftwood-bench"));
    system_ = ActorSystem::create(shared_runtime(), opened_.engine.get(), &shared_device(), {});
    store_ = open_store();
  }

  std::string store_path() const { return folder_->path() + "/store"; }
  std::unique_ptr<Store> open_store() const { return must(Store::open(store_path(), {true, false, 2})); }

  ActorOptions options() {
    ActorOptions options;
    options.limits.handler_deadline = std::chrono::milliseconds(0);
    options.output = [this](const Output& output) { text_ += output.bytes; };
    options.log = [](ActorId, int, std::string_view text) {
      std::fprintf(stderr, "guest: %.*s\n", static_cast<int>(text.size()), text.data());
    };
    return options;
  }
  ActorId spawn(const std::string& name) {
    const ActorId id = must(system_->spawn(name, module_, options()));
    must(system_->wait_idle(id, kPatience));
    return id;
  }
  void tell(ActorId id, const std::vector<int32_t>& message) {
    must(system_->send(id, bytes_of(message)));
    must(system_->wait_idle(id, kPatience));
  }
  void prefill(ActorId id, int64_t tokens) {
    std::vector<int32_t> message = {kAppend};
    uint32_t x = 7;
    for (int64_t i = 0; i < tokens; ++i) {
      message.push_back(static_cast<int32_t>(1000 + ((x = x * 1664525u + 1013904223u) >> 16) % 20000));
    }
    tell(id, message);
  }
  ActorId restore(Store& store, int64_t tokens, const std::string& as = "restored") {
    return must(system_->thaw(as, *must(read_actor(must(store.load(name_of(tokens))))), module_, options()));
  }
  void stop(ActorId id) { must(system_->stop(id)); }

  // An actor for every context, alive and in the store. How long things take does not depend on what KV says,
  // so beyond the first tokens it is made up.
  void prepare() {
    const ActorId first = spawn("first");
    prefill(first, kContexts[0]);
    const auto real = must(system_->freeze(first));
    stop(first);
    for (const int64_t tokens : kContexts) {
      const std::string name = name_of(tokens);
      const ActorId id = must(system_->thaw(name, make_up(*real, tokens), module_, options()));
      actors_.push_back(id);
      ActorSaver saver(store_.get());
      must(saver.save(*must(system_->freeze(id)), name));
    }
  }
  static FrozenActor make_up(const FrozenActor& real, int64_t tokens) {
    FrozenActor made = real;
    engine::FrozenSession& session = made.sessions.at(0);
    const size_t block_bytes = static_cast<size_t>(session.block_bytes);
    const size_t blocks = static_cast<size_t>((tokens + kKvBlockTokens - 1) / kKvBlockTokens);
    const auto values = std::make_shared<std::vector<uint16_t>>(blocks * block_bytes / 2);
    uint32_t x = 1;
    for (uint16_t& v : *values) v = static_cast<uint16_t>((x = x * 1664525u + 1013904223u) >> 18);  // 0 to 2
    session.tokens.resize(static_cast<size_t>(tokens), 7);
    session.computed = tokens;
    session.kv_blocks.clear();
    for (size_t i = 0; i < blocks; ++i) {
      session.kv_blocks.push_back(
          {reinterpret_cast<const uint8_t*>(values->data()) + i * block_bytes, block_bytes});
    }
    session.kv_owner = values;
    return made;
  }
  ActorId longest() const { return actors_.back(); }

  void prefills();
  void restores();
  void first_tokens();
  void cold();
  void saves();
  void save_more(ActorId id, ActorSaver* saver, int32_t tokens);
  void forks();
  void many_forks();
  void verify();
  void cycles();

 private:
  void time_forks(ActorId id, const std::string& figure);

  OpenedModel opened_;
  std::shared_ptr<wasm::Module> module_;
  std::unique_ptr<os::TemporaryFolder> folder_;
  std::unique_ptr<ActorSystem> system_;
  std::unique_ptr<Store> store_;
  std::vector<ActorId> actors_;
  std::string text_;
};

void Bench::prefills() {
  std::vector<double> prefills, whole;
  for (int i = 0; i < 2; ++i) {
    const ActorId id = spawn("prefilled");
    const auto start = Clock::now();
    prefill(id, kLongest);
    prefills.push_back(ms_since(start));
    tell(id, {kNext, 1});
    whole.push_back(ms_since(start));
    stop(id);
  }
  print_figure("prefill", kLongest, "ms", prefills);
  print_figure("prefill_and_first_token", kLongest, "ms", whole);
}

void Bench::restores() {
  for (const int64_t tokens : kContexts) {
    std::vector<double> warm, fresh, load, open;
    for (int i = 0; i < 60; ++i) {
      const auto start = Clock::now();
      const ActorId id = restore(*store_, tokens);
      warm.push_back(ms_since(start));
      stop(id);
      const auto before = Clock::now();
      const auto store = open_store();
      open.push_back(ms_since(before));
      const auto at_load = Clock::now();
      static_cast<void>(must(store->load(name_of(tokens))));
      load.push_back(ms_since(at_load));
      const auto other = open_store();
      const auto at_restore = Clock::now();
      const ActorId second = restore(*other, tokens);
      fresh.push_back(ms_since(at_restore));
      stop(second);
    }
    print_figure("restore", tokens, "ms", warm);
    print_figure("restore_first_time", tokens, "ms", fresh);
    print_figure("of_it_load_first_time", tokens, "ms", load);
    print_figure("open_store", tokens, "ms", open);
  }
}

void Bench::first_tokens() {
  for (size_t c = 0; c < std::size(kContexts); ++c) {
    const int64_t tokens = kContexts[c];
    std::vector<double> never_stopped, after_restore, whole;
    const ActorId other = restore(*store_, tokens, "never-stopped");
    tell(other, {kNext, 3});
    for (int i = 0; i < 15; ++i) {
      const auto at_step = Clock::now();
      tell(other, {kNext, 1});
      never_stopped.push_back(ms_since(at_step));
      const auto start = Clock::now();
      const ActorId id = restore(*store_, tokens);
      const auto runnable = Clock::now();
      tell(id, {kNext, 1});
      after_restore.push_back(ms_since(runnable));
      whole.push_back(ms_since(start));
      stop(id);
    }
    stop(other);
    print_figure("token_never_stopped", tokens, "ms", never_stopped);
    print_figure("token_after_restore", tokens, "ms", after_restore);
    print_figure("restore_and_first_token", tokens, "ms", whole);
  }
}

void Bench::cold() {
  std::vector<double> times;
  store_.reset();  // maps the files
  for (int i = 0; i < 5; ++i) {
    drop_page_cache(store_path());
    const auto start = Clock::now();
    const auto store = open_store();
    const ActorId id = restore(*store, kLongest);
    tell(id, {kNext, 1});
    times.push_back(ms_since(start));
    stop(id);
  }
  store_ = open_store();
  print_figure("cold_restore_and_first_token", kLongest, "ms", times);
}

void Bench::save_more(ActorId id, ActorSaver* saver, int32_t tokens) {
  std::vector<double> times, written, plain, ratio;
  const std::string path = folder_->path() + "/plain";
  for (int i = 0; i < 12; ++i) {
    tell(id, {kNext, tokens});
    const auto frozen = must(system_->freeze(id));
    const auto start = Clock::now();
    const snapshot::SaveReport report = must(saver->save(*frozen, "more"));
    times.push_back(ms_since(start));
    written.push_back(static_cast<double>(report.bytes_written) / 1e6);
    const std::vector<uint8_t> bytes(report.bytes_written, 3);
    const auto at_plain = Clock::now();
    must(os::write_file_atomically(path, bytes, os::FileAccess::kPrivate));
    plain.push_back(ms_since(at_plain));
    ratio.push_back(times.back() / plain.back());
  }
  const std::string name = "save_after_" + std::to_string(tokens) + "_more";
  print_figure(name, kLongest, "ms", times);
  print_figure(name + "_bytes", kLongest, "MB", written);
  print_figure(name + "_plain_file", kLongest, "ms", plain);
  print_figure(name + "_ratio", kLongest, "ratio", ratio);
}

void Bench::saves() {
  const ActorId id = longest();
  std::vector<double> held, whole, plain, ratio, megabytes;
  const std::string path = folder_->path() + "/plain";
  for (int i = 0; i < 10; ++i) {
    const auto start = Clock::now();
    const auto frozen = must(system_->freeze(id));
    held.push_back(ms_since(start));
    const std::string there = folder_->path() + "/saved";
    const auto store = must(Store::open(there, {true, false, 2}));
    ActorSaver saver(store.get());
    const auto at_save = Clock::now();
    const snapshot::SaveReport report = must(saver.save(*frozen, "whole"));
    whole.push_back(ms_since(at_save));
    const std::vector<uint8_t> bytes(report.bytes_written, 3);
    const auto at_plain = Clock::now();
    must(os::write_file_atomically(path, bytes, os::FileAccess::kPrivate));
    plain.push_back(ms_since(at_plain));
    ratio.push_back(whole.back() / plain.back());
    megabytes.push_back(static_cast<double>(bytes.size()) / 1e6);
    std::filesystem::remove(path);
    std::filesystem::remove_all(there);
    ::sync();
  }
  print_figure("held_by_save", kLongest, "ms", held);
  print_figure("save", kLongest, "ms", whole);
  print_figure("save_bytes", kLongest, "MB", megabytes);
  print_figure("plain_write_and_fsync", kLongest, "ms", plain);
  print_figure("save_ratio", kLongest, "ratio", ratio);
  ActorSaver saver(store_.get());
  must(saver.save(*must(system_->freeze(id)), "more"));
  save_more(id, &saver, 1);
  save_more(id, &saver, 32);
}

// An actor that has written 1 % of its memory (three pages) since it was restored or forked last.
void Bench::time_forks(ActorId id, const std::string& figure) {
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    tell(id, {kWrite, 3});
    const auto start = Clock::now();
    const ActorId child = must(system_->fork(id, "fork", 1));
    times.push_back(ms_since(start) * 1000);
    must(system_->wait_idle(child, kPatience));
    stop(child);
  }
  print_figure(figure, kLongest, "us", times);
}

void Bench::forks() {
  const ActorId restored = restore(*store_, kLongest, "parent");
  time_forks(restored, "fork_of_restored");
  stop(restored);
  time_forks(longest(), "fork_of_started");
}

void Bench::many_forks() {
  constexpr int kForks = 1000;
  const ActorId parent = restore(*store_, kLongest, "parent");
  tell(parent, {kWrite, 3});
  std::vector<ActorId> children;
  children.reserve(kForks);
  const uint64_t rss = proc_kib("/proc/self/smaps_rollup", "Rss:");
  const uint64_t own = proc_kib("/proc/self/smaps_rollup", "Pss:");
  const size_t mappings = count_mappings();
  const auto start = Clock::now();
  for (int i = 0; i < kForks; ++i) {
    children.push_back(must(system_->fork(parent, "child-" + std::to_string(i), static_cast<uint64_t>(i))));
  }
  const double ms = ms_since(start);
  for (const ActorId id : children) must(system_->wait_idle(id, kPatience));
  const auto each = [](uint64_t after, uint64_t before) {
    return static_cast<double>(after - before) / kForks;
  };
  print_figure("thousand_forks", kLongest, "us each", {ms * 1000 / kForks});
  print_figure("thousand_forks_rss", kLongest, "KiB each",
               {each(proc_kib("/proc/self/smaps_rollup", "Rss:"), rss)});
  print_figure("thousand_forks_pss", kLongest, "KiB each",
               {each(proc_kib("/proc/self/smaps_rollup", "Pss:"), own)});
  print_figure("thousand_forks_mappings", kLongest, "each", {each(count_mappings(), mappings)});
  for (const ActorId id : children) stop(id);
  stop(parent);
}

void Bench::verify() {
  std::vector<double> rates, times, processor;
  for (int i = 0; i < 25; ++i) {
    const auto store = open_store();
    const double processor_before = processor_ms();
    const auto start = Clock::now();
    const auto loaded = must(store->load(name_of(kLongest), Verify::kFull));
    const ActorId id = must(system_->thaw("verified", *must(read_actor(loaded)), module_, options()));
    times.push_back(ms_since(start));
    processor.push_back(processor_ms() - processor_before);
    stop(id);
    uint64_t bytes = 0;
    for (const auto& section : loaded->sections()) {
      for (const auto& tensor : section.tensors) bytes += *snapshot::tensor_bytes(tensor.dtype, tensor.shape);
    }
    rates.push_back(static_cast<double>(bytes) / times.back() / 1e6);
  }
  print_figure("verified_restore", kLongest, "ms", times);
  print_figure("verified_restore_processor", kLongest, "ms", processor);
  print_figure("verified_restore_rate", kLongest, "GB/s", rates);
}

void Bench::cycles() {
  constexpr int kCycles = 1000;
  ActorSaver saver(store_.get());
  std::vector<double> times;
  uint64_t rss = 0;
  size_t mappings = 0, descriptors = 0;
  ActorId id = restore(*store_, 24, "cycle");
  for (int i = 0; i < kCycles; ++i) {
    const auto start = Clock::now();
    tell(id, {kWrite, 1});
    must(saver.save(*must(system_->freeze(id)), "cycle"));
    stop(id);
    id = must(system_->thaw("cycle", *must(read_actor(must(store_->load("cycle")))), module_, options()));
    times.push_back(ms_since(start));
    if (i % 100 == 99) must(store_->gc({}));
    if (i != 199) continue;
    rss = proc_kib("/proc/self/smaps_rollup", "Rss:");
    mappings = count_mappings();
    descriptors = count_descriptors();
  }
  const auto more = [](uint64_t after, uint64_t before) {
    return static_cast<double>(static_cast<int64_t>(after) - static_cast<int64_t>(before));
  };
  print_figure("cycle", 24, "ms", times);
  print_figure("cycles_800_rss", 24, "KiB more", {more(proc_kib("/proc/self/smaps_rollup", "Rss:"), rss)});
  print_figure("cycles_800_mappings", 24, "more", {more(count_mappings(), mappings)});
  print_figure("cycles_800_descriptors", 24, "more", {more(count_descriptors(), descriptors)});
  stop(id);
}

int run(int argc, char** argv) {
  const char* model = std::getenv("DRIFTWOOD_SMOLLM2");
  if (model == nullptr || *model == 0) {
    std::fprintf(stderr, "snapshot_actor_bench: DRIFTWOOD_SMOLLM2 does not name the model\n");
    return 1;
  }
  const std::pair<const char*, void (Bench::*)()> figures[] = {
      {"restore", &Bench::restores}, {"first", &Bench::first_tokens}, {"prefill", &Bench::prefills},
      {"save", &Bench::saves},       {"fork", &Bench::forks},         {"forks", &Bench::many_forks},
      {"verify", &Bench::verify},    {"cycles", &Bench::cycles},      {"cold", &Bench::cold},
  };
  Bench bench(model);
  bench.prepare();
  for (const auto& [name, measure] : figures) {
    const bool wanted =
        argc < 2 ||
        std::any_of(argv + 1, argv + argc, [&](const char* a) { return std::strcmp(a, name) == 0; });
    if (wanted) (bench.*measure)();
  }
  return 0;
}

}  // namespace
}  // namespace driftwood::actor

int main(int argc, char** argv) { return driftwood::actor::run(argc, argv); }
