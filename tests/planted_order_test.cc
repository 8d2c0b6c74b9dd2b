// Shows that comparing bytes on the real model notices a change of order: one kernel of the CPU table is replaced by
// one that adds the same numbers in another order, and the logits must differ from the real table's.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.h"
#include "engine/engine.h"

namespace driftwood {
namespace {

const kernels::KernelTable* real_table = nullptr;

// rms_norm with one running sum from the last element to the first instead of 16 partial sums.
void rms_norm_in_another_order(const RmsNormArgs& args, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    float* x = args.x + t * args.width;
    float sum = 0.0f;
    for (int64_t i = args.width - 1; i >= 0; --i) {
      if (args.residual != nullptr) x[i] = x[i] + args.residual[t * args.width + i];
      sum = std::fma(x[i], x[i], sum);
    }
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(args.width) + args.epsilon);
    std::vector<float> row(static_cast<size_t>(args.width));
    for (int64_t i = 0; i < args.width; ++i) row[i] = (x[i] * scale) * args.weight[i];
    if (args.out != nullptr) std::memcpy(args.out + t * args.width, row.data(), row.size() * sizeof(float));
    if (args.q8.q == nullptr) continue;
    const int64_t blocks = args.width / kQuantBlock;
    const ActivationsQ8 q8 = {args.q8.q + t * args.width, args.q8.d + t * blocks, args.q8.s + t * blocks,
                              args.q8.isum + t * blocks};
    real_table->quantise({1, args.width, row.data(), q8}, 0, 1);
  }
}

std::vector<float> logits_with(const std::shared_ptr<engine::LoadedModel>& model, const kernels::KernelTable& table) {
  auto device = device::CpuDevice::create({.threads = 2, .table = &table});
  EXPECT_TRUE(device.is_ok());
  auto engine = engine::Engine::create(model, device->get(), {});
  EXPECT_TRUE(engine.is_ok()) << engine.status().to_string();
  const engine::SessionId session = *(*engine)->open({});
  const std::vector<int32_t> ids = {1, 4093, 198, 19556, 28, 638};
  EXPECT_TRUE((*engine)->append(session, ids).is_ok());
  EXPECT_TRUE((*engine)->step(session).is_ok());
  const std::span<const float> row = *(*engine)->logits(session);
  return {row.begin(), row.end()};
}

TEST(PlantedOrder, IsCaughtOnTheRealModel) {
  const char* path = std::getenv("DRIFTWOOD_SMOLLM2");
  if (path == nullptr) GTEST_SKIP() << "DRIFTWOOD_SMOLLM2 is not set (make test sets it)";
  auto model = engine::load_model(path, {"", 2});
  ASSERT_TRUE(model.is_ok()) << model.status().to_string();
  auto device = device::CpuDevice::create({.threads = 1});
  ASSERT_TRUE(device.is_ok());
  real_table = &(*device)->table();
  kernels::KernelTable planted = *real_table;
  planted.rms_norm = rms_norm_in_another_order;

  const std::vector<float> right = logits_with(*model, *real_table);
  const std::vector<float> again = logits_with(*model, *real_table);
  const std::vector<float> other = logits_with(*model, planted);
  ASSERT_EQ(right.size(), other.size());
  EXPECT_EQ(std::memcmp(right.data(), again.data(), right.size() * sizeof(float)), 0);
  EXPECT_NE(std::memcmp(right.data(), other.data(), right.size() * sizeof(float)), 0);
  // The planted order is as good a sum, only another one: close, but not equal.
  for (size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(right[i], other[i], 1.0f) << i;
}

}  // namespace
}  // namespace driftwood
