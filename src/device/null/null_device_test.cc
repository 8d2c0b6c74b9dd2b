#include "device/null/null_device.h"

#include <gtest/gtest.h>

namespace driftwood::device {
namespace {

TEST(NullDevice, SaysWhyEverywhere) {
  const auto device = make_null_device("cuda", "this build has no CUDA backend");
  EXPECT_EQ(device->info().name, "cuda");
  EXPECT_EQ(device->ops().matmul, nullptr);
  EXPECT_EQ(device->ops().attention, nullptr);
  uint8_t byte = 0;
  const std::string message = "device 'cuda' is not available: this build has no CUDA backend";
  for (const Status& status : {device->register_host(&byte, 1).status(), device->allocate(1).status(),
                               device->unregister_host(&byte), device->make_stream()->wait()}) {
    EXPECT_EQ(status.code(), Code::kUnimplemented);
    EXPECT_EQ(status.message(), message);
  }
}

}  // namespace
}  // namespace driftwood::device
