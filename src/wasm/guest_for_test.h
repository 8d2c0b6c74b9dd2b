// What the tests of this folder share: one runtime a process, modules from text, an instance with sinks.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wasm/instance.h"
#include "wasm/runtime.h"

namespace driftwood::wasm {

inline Runtime& shared_runtime() {
  static const std::shared_ptr<Runtime> runtime = [] {
    RuntimeOptions options;
    options.epoch_period = std::chrono::milliseconds(5);
    auto made = Runtime::create(options);
    DW_CHECK(made.is_ok(), made.status().message().c_str());
    return *made;
  }();
  return *runtime;
}

inline Result<std::shared_ptr<Module>> load_text(std::string_view text, Runtime& runtime = shared_runtime()) {
  return runtime.load("test.wat", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

inline Result<std::unique_ptr<Instance>> instance_of(std::string_view text, InstanceOptions options = {},
                                                     std::span<const HostImport> imports = {}) {
  auto module = load_text(text);
  if (!module.is_ok()) return module.status();
  return shared_runtime().instantiate(*module, imports, std::move(options));
}

inline bool mentions(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string::npos;
}

}  // namespace driftwood::wasm
