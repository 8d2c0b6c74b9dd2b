// A thousand times: an actor works, is saved, destroyed and restored. Memory, descriptors, mappings and the
// store end as they began.
#include <gtest/gtest.h>

#include "actor/actor_saver.h"
#include "actor/actors_for_test.h"
#include "actor/figures_for_test.h"
#include "os/temporary_folder.h"

namespace driftwood::actor {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsMemory = false;  // freed memory is kept back
#else
constexpr bool kCountsMemory = true;
#endif
constexpr int kCycles = 1000;
constexpr int kWarmUp = 200;

struct Holdings {
  uint64_t rss_kib = proc_kib("/proc/self/smaps_rollup", "Rss:");
  size_t mappings = count_mappings();
  size_t descriptors = count_descriptors();
};

size_t count_files(const std::string& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<size_t>(std::distance(std::filesystem::begin(entries), std::filesystem::end(entries)));
}

class SnapshotCycle : public ::testing::Test {
 protected:
  void SetUp() override {
    opened_ = open_tiny();
    if (opened_.engine == nullptr) GTEST_SKIP() << "no fixture models: DRIFTWOOD_FIXTURE_MODELS is not set";
    system_ = ActorSystem::create(shared_runtime(), opened_.engine.get(), &shared_device(), {2});
    folder_ = std::move(os::TemporaryFolder::create("driftwood-cycle")).value();
    store_ = std::move(snapshot::Store::open(path(), {true, false, 1})).value();
    saver_ = std::make_unique<ActorSaver>(store_.get());
  }
  std::string path() const { return folder_->path() + "/store"; }
  void tell(ActorId id, const std::vector<int32_t>& message) {
    ASSERT_TRUE(system_->send(id, bytes_of(message)).is_ok());
    ASSERT_TRUE(system_->wait_idle(id, kPatience).is_ok());
  }
  // Saved and destroyed; the restored one.
  ActorId cycle(ActorId id) {
    const auto frozen = system_->freeze(id);
    EXPECT_TRUE(frozen.is_ok()) << frozen.status().message();
    const auto saved = saver_->save(**frozen, "cycle");
    EXPECT_TRUE(saved.is_ok()) << saved.status().message();
    EXPECT_TRUE(system_->stop(id).is_ok());
    const auto loaded = store_->load("cycle");
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().message();
    const auto actor = read_actor(*loaded);
    EXPECT_TRUE(actor.is_ok()) << actor.status().message();
    const auto restored = system_->thaw("cycle", **actor, guest("test_worker"), options_with(outbox_));
    EXPECT_TRUE(restored.is_ok()) << restored.status().message();
    return *restored;
  }

  OpenedModel opened_;
  std::unique_ptr<ActorSystem> system_;
  std::unique_ptr<os::TemporaryFolder> folder_;
  std::unique_ptr<snapshot::Store> store_;
  std::unique_ptr<ActorSaver> saver_;
  Outbox outbox_;
};

TEST_F(SnapshotCycle, AThousandLeaveNothingBehind) {
  constexpr int32_t kAppend = 0, kWrite = 2;
  ActorId id = *system_->spawn("cycle", guest("test_worker"), options_with(outbox_));
  tell(id, {kAppend, 1, 2, 3, 4, 5});
  Holdings before;
  for (int i = 0; i < kCycles; ++i) {
    tell(id, {kWrite, 1 + i % 3});
    id = cycle(id);
    if (i % 50 == 49) {
      ASSERT_TRUE(store_->gc({}).is_ok());
    }
    if (i + 1 == kWarmUp) before = Holdings();
  }
  const Holdings after;
  EXPECT_EQ(outbox_.log_text(), "");
  EXPECT_LE(after.mappings, before.mappings + 2);  // malloc's own come and go
  EXPECT_EQ(after.descriptors, before.descriptors);
  if (kCountsMemory) {
    EXPECT_LE(after.rss_kib, before.rss_kib + 2048);
  }

  EXPECT_TRUE(system_->stop(id).is_ok());
  saver_.reset();
  EXPECT_EQ(opened_.engine->stats().kv_blocks_in_use, 0);
  ASSERT_TRUE(store_->remove_name("cycle").is_ok());
  ASSERT_TRUE(store_->gc({}).is_ok());
  for (const char* part : {"/packs", "/snapshots", "/names", "/stamps"}) {
    EXPECT_EQ(count_files(path() + part), 0u) << part;
  }
}

}  // namespace
}  // namespace driftwood::actor
