// Any bytes through load(), and what loads through instantiate() and a call of each export: a Status, never more.
#include <cstdint>
#include <memory>
#include <span>

#include "wasm/runtime.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace driftwood::wasm;  // NOLINT: one function
  static const std::shared_ptr<Runtime> runtime = [] {
    RuntimeOptions options;
    options.epoch_period = std::chrono::milliseconds(1);
    return std::move(Runtime::create(options)).value();
  }();
  auto module = runtime->load("fuzz", {data, size});
  if (!module.is_ok()) return 0;
  InstanceOptions options;
  options.max_memory_bytes = 8 << 20;
  options.call_deadline = std::chrono::milliseconds(5);
  auto instance = runtime->instantiate(*module, {}, std::move(options));
  if (!instance.is_ok()) return 0;
  const uint64_t args[16] = {0, 1, ~uint64_t{0}, 65536};
  for (const std::string& name : (*module)->report().exports) {
    for (size_t count = 0; count <= 16 && (*instance)->alive(); ++count) {
      auto result = (*instance)->call(name, std::span(args, count));
      if (result.is_ok()) break;
    }
  }
  return 0;
}
