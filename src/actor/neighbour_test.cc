// While an actor runs, others beside it are saved onto a full disk, restored from damaged files, forked,
// trapped and stopped: not a bit of its output changes.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "actor/actor_saver.h"
#include "actor/scenario_for_test.h"
#include "os/fault_hook.h"
#include "os/temporary_folder.h"

namespace driftwood::actor {
namespace {

// Every third change of the file system finds the disk full.
class FullDisk final : public os::FaultHook {
 public:
  FullDisk() : previous_(os::set_fault_hook(this)) {}
  ~FullDisk() override { os::set_fault_hook(previous_); }
  int before(os::Change, const std::string&) override { return calls_.fetch_add(1) % 3 == 2 ? ENOSPC : 0; }

 private:
  os::FaultHook* const previous_;
  std::atomic<int> calls_{0};
};

void damage_a_pack(const std::string& store) {
  for (const auto& entry : std::filesystem::directory_iterator(store + "/packs")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
    file.seekp(70000);
    file.put('x');
    return;
  }
}

// Trouble of every kind, in another thread than the witness's; counts what was refused.
class Trouble {
 public:
  Trouble(Place& place, const FrozenActor& frozen, std::string folder)
      : place_(place), frozen_(frozen), folder_(std::move(folder)) {}

  void run(const std::atomic<bool>& over) {
    for (int round = 0; !over.load() || round < 3; ++round) {
      save_onto_a_full_disk(round);
      restore_from_damage(round);
      fork_and_stop(round);
      thaw_with_other_identity();
    }
  }
  int refused() const { return refused_; }

 private:
  void save_onto_a_full_disk(int round) {
    auto store = snapshot::Store::open(folder_ + "/full" + std::to_string(round), {true, false, 1});
    const FullDisk disk;
    if (!store.is_ok()) return;
    ActorSaver saver(store->get());
    if (!saver.save(frozen_, "a").is_ok()) ++refused_;
  }
  void restore_from_damage(int round) {
    const std::string path = folder_ + "/damaged" + std::to_string(round);
    auto store = snapshot::Store::open(path, {true, false, 1});
    ASSERT_TRUE(store.is_ok());
    ActorSaver saver(store->get());
    ASSERT_TRUE(saver.save(frozen_, "a").is_ok());
    damage_a_pack(path);
    const auto fresh = snapshot::Store::open(path, {false, false, 1});
    ASSERT_TRUE(fresh.is_ok());
    const auto loaded = (*fresh)->load("a");
    EXPECT_FALSE(loaded.is_ok());
    if (!loaded.is_ok()) ++refused_;
  }
  void fork_and_stop(int round) {
    Outbox outbox;
    const auto id = place_.system().thaw("other", frozen_, nullptr, options_with(outbox));
    ASSERT_TRUE(id.is_ok()) << id.status().message();
    const auto child = place_.system().fork(*id, "child", static_cast<uint64_t>(round));
    if (child.is_ok()) static_cast<void>(place_.system().stop(*child));
    static_cast<void>(place_.system().stop(*id));
  }
  void thaw_with_other_identity() {
    FrozenActor changed = frozen_;
    changed.sessions.at(0).tokens.at(0) = 1 << 20;
    Outbox outbox;
    if (!place_.system().thaw("other", changed, nullptr, options_with(outbox)).is_ok()) ++refused_;
  }

  Place& place_;
  const FrozenActor& frozen_;
  const std::string folder_;
  int refused_ = 0;
};

TEST(Neighbour, FaultsOfOthersChangeNoBit) {
  Place place;
  if (!place.ready()) GTEST_SKIP() << "no fixture models: DRIFTWOOD_FIXTURE_MODELS is not set";
  auto folder = os::TemporaryFolder::create("driftwood-neighbour-test");
  ASSERT_TRUE(folder.is_ok());
  const WholeRun whole = run_whole(place);
  std::string before;
  const auto frozen = frozen_at(place, 20, &before);
  ASSERT_NE(frozen, nullptr);
  Trouble trouble(place, *frozen, (*folder)->path());
  std::atomic<bool> over{false};
  std::thread other([&] { trouble.run(over); });
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(run_whole(place).text == whole.text) << "run " << i;
  over = true;
  other.join();
  EXPECT_GE(trouble.refused(), 6);
  EXPECT_EQ(place.system().list().size(), 0u);
}

}  // namespace
}  // namespace driftwood::actor
