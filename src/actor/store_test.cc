// Actors through the store and through files: what comes back goes on as the one that never stopped.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "actor/actor_saver.h"
#include "actor/actor_sections.h"
#include "actor/compare.h"
#include "actor/scenario_for_test.h"
#include "os/temporary_folder.h"

namespace driftwood::actor {
namespace {

class StoredActors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!here_.ready()) GTEST_SKIP() << "no fixture models: DRIFTWOOD_FIXTURE_MODELS is not set";
    auto folder = os::TemporaryFolder::create("driftwood-actor-test");
    ASSERT_TRUE(folder.is_ok());
    folder_ = std::move(*folder);
    store_ = open(path("store"));
    whole_ = run_whole(here_);
  }
  std::string path(const std::string& name) const { return folder_->path() + "/" + name; }
  static std::unique_ptr<snapshot::Store> open(const std::string& where) {
    auto store = snapshot::Store::open(where, {true, false, 2});
    EXPECT_TRUE(store.is_ok()) << store.status().message();
    return std::move(*store);
  }
  static std::shared_ptr<FrozenActor> read(snapshot::Store& store, const std::string& which) {
    auto stored = store.load(which);
    EXPECT_TRUE(stored.is_ok()) << stored.status().message();
    auto frozen = read_actor(*stored);
    EXPECT_TRUE(frozen.is_ok()) << frozen.status().message();
    const auto code = module_code(**stored);
    EXPECT_TRUE(code.is_ok()) << code.status().message();
    auto module = shared_runtime()->load("from the snapshot", *code);
    EXPECT_TRUE(module.is_ok());
    (*frozen)->module = *module;
    return *frozen;
  }

  Place here_, elsewhere_;
  std::unique_ptr<os::TemporaryFolder> folder_;
  std::unique_ptr<snapshot::Store> store_;
  WholeRun whole_;
};

TEST_F(StoredActors, GoOnFromEveryRestPoint) {
  for (uint64_t k = 0; k <= whole_.handlers; ++k) {
    std::string before;
    const auto frozen = frozen_at(here_, k, &before);
    ActorSaver saver(store_.get());
    const auto saved = saver.save(*frozen, "at" + std::to_string(k));
    ASSERT_TRUE(saved.is_ok()) << saved.status().message();
    const auto back = read(*store_, saved->hash);
    const auto difference = first_difference(*frozen, *back);
    ASSERT_TRUE(difference.is_ok());
    ASSERT_EQ(*difference, "") << "after " << k << " handlers";
    ASSERT_EQ(before + rest_of(elsewhere_, *back), whole_.text) << "after " << k << " handlers";
    ASSERT_EQ(before + rest_of(elsewhere_, *back), whole_.text) << "twice from one snapshot";
  }
}

TEST_F(StoredActors, TheSecondSaveWritesWhatChanged) {
  Outbox outbox;
  const ActorId id = here_.spawn(outbox);
  ActorSaver saver(store_.get());
  here_.run_to(id, 20);
  const auto first = saver.save(**here_.system().freeze(id), "a");
  ASSERT_TRUE(first.is_ok());
  const auto same = saver.save(**here_.system().freeze(id), "b");
  ASSERT_TRUE(same.is_ok());
  EXPECT_EQ(same->pieces_written, 0u);
  here_.run_to(id, 21);
  const auto second = saver.save(**here_.system().freeze(id), "c");
  ASSERT_TRUE(second.is_ok());
  EXPECT_GT(second->pieces_written, 0u);
  EXPECT_LT(second->pieces_written, first->pieces_written);
  const auto back = store_->load("c");
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ((*back)->origin().parent, same->hash);
  here_.stop(id);
}

TEST_F(StoredActors, AThawedOnesSavesShareWithItsSnapshot) {
  std::string before;
  const auto frozen = frozen_at(here_, 25, &before);
  ActorSaver saver(store_.get());
  const auto first = saver.save(*frozen, "a");
  ASSERT_TRUE(first.is_ok());
  Outbox outbox;
  ActorOptions options = options_with(outbox);
  options.hold_at.handlers_run = 25;
  const auto id = elsewhere_.system().thaw("self", *read(*store_, "a"), nullptr, options);
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  const auto refrozen = elsewhere_.system().freeze(*id);
  ASSERT_TRUE(refrozen.is_ok());
  const auto difference = first_difference(*frozen, **refrozen);
  EXPECT_EQ(*difference, "");
  ActorSaver again(store_.get());
  const auto second = again.save(**refrozen, "b");
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(second->pieces_written, 0u);
  EXPECT_EQ((*store_->load("b"))->origin().parent, first->hash);
  elsewhere_.stop(*id);
}

TEST_F(StoredActors, TravelAsOneFile) {
  std::string before;
  const auto frozen = frozen_at(here_, 22, &before);
  ActorSaver saver(store_.get());
  ASSERT_TRUE(saver.save(*frozen, "a").is_ok());
  const auto written = store_->export_file("a", path("moving"));
  ASSERT_TRUE(written.is_ok()) << written.status().message();
  const auto other = open(path("other"));
  const auto imported = other->import_file(path("moving"), "arrived");
  ASSERT_TRUE(imported.is_ok()) << imported.status().message();
  EXPECT_EQ(imported->hash, written->hash);
  EXPECT_EQ(before + rest_of(elsewhere_, *read(*other, "arrived")), whole_.text);
  ASSERT_TRUE(other->export_file("arrived", path("again")).is_ok());
  std::ifstream a(path("moving"), std::ios::binary), b(path("again"), std::ios::binary);
  const std::string x((std::istreambuf_iterator<char>(a)), {}), y((std::istreambuf_iterator<char>(b)), {});
  EXPECT_TRUE(x == y);
}

TEST_F(StoredActors, ARekeyedSnapshotIsAForkOfItsOwn) {
  std::string before;
  const auto frozen = frozen_at(here_, 12, &before);
  ActorSaver saver(store_.get());
  ASSERT_TRUE(saver.save(*frozen, "a").is_ok());
  const auto fork = read(*store_, "a");
  rekey(fork.get(), 3);
  fork->module = nullptr;
  ActorSaver forks(store_.get());
  const auto saved = forks.save(*fork, "b");
  ASSERT_TRUE(saved.is_ok()) << saved.status().message();
  EXPECT_EQ(saved->pieces_written, 0u);
  // The module was left out: nothing else is missing.
  const auto stored = store_->load("b");
  ASSERT_TRUE(stored.is_ok());
  EXPECT_FALSE(module_code(**stored).is_ok());
  const auto back = *read_actor(*stored);
  back->module = guest("test_everything");
  EXPECT_TRUE(before + rest_of(elsewhere_, *back) != whole_.text);
}

}  // namespace
}  // namespace driftwood::actor
