// The store: what is kept once, what comes back, names, trust.
#include "snapshot/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/test_store.h"

namespace driftwood::snapshot {
namespace {

TEST(Store, WhatIsSavedComesBack) {
  const TempFolder folder;
  auto store = open_store(folder / "s");
  const Actor actor;
  const auto saved = store->save(actor.contents(), "first");
  ASSERT_TRUE(saved.is_ok()) << saved.status().message();
  EXPECT_EQ(saved->pieces_total, 10U + 6 + 2);
  const auto loaded = store->load("first");
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  expect_equal(**loaded, actor.contents());
  EXPECT_EQ((*loaded)->hash(), saved->hash);
}

TEST(Store, TheHashIsThePortableFiles) {
  const TempFolder folder;
  const Actor actor;
  const auto written = write_snapshot(folder / "portable", actor.contents());
  ASSERT_TRUE(written.is_ok());
  const auto saved = open_store(folder / "s")->save(actor.contents(), "");
  ASSERT_TRUE(saved.is_ok());
  EXPECT_EQ(saved->hash, written->hash);
}

}  // namespace
}  // namespace driftwood::snapshot
