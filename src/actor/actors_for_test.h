// What the tests of this folder share: one Wasm runtime, the example guests, an outbox that keeps what actors
// emit.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "actor/actor.h"
#include "device/cpu/cpu_device.h"

namespace driftwood::actor {

inline constexpr std::chrono::milliseconds kPatience{120000};

inline std::shared_ptr<wasm::Runtime> shared_runtime() {
  static const std::shared_ptr<wasm::Runtime> runtime = [] {
    wasm::RuntimeOptions options;
    options.epoch_period = std::chrono::milliseconds(5);
    auto made = wasm::Runtime::create(options);
    DW_CHECK(made.is_ok(), made.status().message().c_str());
    return *made;
  }();
  return runtime;
}

inline std::shared_ptr<wasm::Module> guest(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<wasm::Module>> loaded;
  const std::lock_guard lock(mutex);
  std::shared_ptr<wasm::Module>& module = loaded[name];
  if (module == nullptr) {
    auto made = shared_runtime()->load_file(std::string(DW_GUEST_DIR) + "/" + name + ".wasm");
    DW_CHECK(made.is_ok(), made.status().message().c_str());
    module = *made;
  }
  return module;
}

inline std::shared_ptr<wasm::Module> module_of(std::string_view text) {
  auto made =
      shared_runtime()->load("test.wat", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  DW_CHECK(made.is_ok(), made.status().message().c_str());
  return *made;
}

inline device::Device& shared_device() {
  static const std::unique_ptr<device::CpuDevice> device = [] {
    auto made = device::CpuDevice::create({});
    DW_CHECK(made.is_ok(), made.status().message().c_str());
    return std::move(*made);
  }();
  return *device;
}

// The tiny fixture model on an engine of its own, or null if DRIFTWOOD_FIXTURE_MODELS is not set.
struct OpenedModel {
  std::shared_ptr<engine::LoadedModel> model;
  std::unique_ptr<engine::Engine> engine;
};

inline OpenedModel open_model(const std::string& path) {
  OpenedModel opened;
  auto model = engine::load_model(path, {});
  DW_CHECK(model.is_ok(), model.status().message().c_str());
  opened.model = *model;
  engine::EngineOptions options;
  options.kv_budget_bytes = 256 << 20;
  auto engine = engine::Engine::create(opened.model, &shared_device(), options);
  DW_CHECK(engine.is_ok(), engine.status().message().c_str());
  opened.engine = std::move(*engine);
  return opened;
}

inline OpenedModel open_tiny() {
  const char* folder = std::getenv("DRIFTWOOD_FIXTURE_MODELS");
  return folder == nullptr || *folder == 0 ? OpenedModel{} : open_model(std::string(folder) + "/llama3");
}

// Keeps everything; thread-safe. What it keeps is shared with its sinks, so that an actor that still runs
// when a test ends, a fork for instance, writes to something that is there.
class Outbox {
 public:
  OutputSink sink() {
    return [kept = kept_](const Output& output) {
      const std::lock_guard lock(kept->mutex);
      kept->text += output.bytes;
      kept->sequences.push_back(output.sequence);
      kept->kinds.push_back(output.kind);
    };
  }
  LogSink log() {
    return [kept = kept_](ActorId, int, std::string_view text) {
      const std::lock_guard lock(kept->mutex);
      kept->log += std::string(text) + "\n";
    };
  }
  std::string text() const { return copy(&Kept::text); }
  std::string log_text() const { return copy(&Kept::log); }
  std::vector<uint64_t> sequences() const { return copy(&Kept::sequences); }
  std::vector<OutputKind> kinds() const { return copy(&Kept::kinds); }
  std::vector<int32_t> ids() const {
    const std::string bytes = text();
    std::vector<int32_t> ids(bytes.size() / 4);
    if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * 4);
    return ids;
  }

 private:
  struct Kept {
    std::mutex mutex;
    std::string text, log;
    std::vector<uint64_t> sequences;
    std::vector<OutputKind> kinds;
  };
  template <class T>
  T copy(T Kept::* member) const {
    const std::lock_guard lock(kept_->mutex);
    return (*kept_).*member;
  }

  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

inline ActorOptions options_with(Outbox& outbox, std::string_view config = "") {
  ActorOptions options;
  options.config.assign(config.begin(), config.end());
  options.output = outbox.sink();
  options.log = outbox.log();
  return options;
}

inline std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::span<const uint8_t> bytes_of(const std::vector<int32_t>& ids) {
  return {reinterpret_cast<const uint8_t*>(ids.data()), ids.size() * 4};
}

}  // namespace driftwood::actor
