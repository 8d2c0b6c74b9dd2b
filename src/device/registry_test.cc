#include "device/registry.h"

#include <gtest/gtest.h>

namespace driftwood::device {
namespace {

TEST(Registry, CreatesByNameAndNamesWhatThereIs) {
  Registry registry;
  int asked_threads = 0;
  const auto factory = [&](const DeviceOptions& options) -> Result<std::unique_ptr<Device>> {
    asked_threads = options.threads;
    return unavailable("no such hardware");
  };
  ASSERT_TRUE(registry.add({"cpu", "the processor", factory}).is_ok());
  ASSERT_TRUE(registry.add({"cuda", "a GPU", factory}).is_ok());
  EXPECT_EQ(registry.add({"cpu", "again", factory}).code(), Code::kAlreadyExists);
  ASSERT_EQ(registry.entries().size(), 2u);
  EXPECT_EQ(registry.entries()[0].name, "cpu");

  EXPECT_EQ(registry.create("cuda", {.threads = 7}).status().code(), Code::kUnavailable);
  EXPECT_EQ(asked_threads, 7);
  const auto missing = registry.create("tpu", {});
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_EQ(missing.status().message(), "no device named 'tpu'; this build has: cpu, cuda");
}

}  // namespace
}  // namespace driftwood::device
