// Composition of device, model and engine from command-line flags, shared by the commands.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "device/device.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"

namespace driftwood::cli {

struct EngineFlags {
  std::string model = "smollm2-135m";
  std::string device = "cpu";
  std::string isa;  // empty: DRIFTWOOD_CPU or the best there is
  int threads = 0;  // 0: physical cores
  std::string kv = "f16";
  int64_t max_context = 0;
  bool verify_cache = false;   // compare cached weights with their checksums
  int64_t weights_memory = 0;  // bytes of weights to hold in memory; 0: what the system can spare
  bool no_cache = false;       // neither packed weights nor compiled modules on disk
};

// Declaration order is destruction order reversed: the engine goes first, the device last.
struct OpenedEngine {
  std::unique_ptr<device::Device> device;
  std::shared_ptr<engine::LoadedModel> model;
  std::unique_ptr<engine::Engine> engine;
};

void add_device_flags(CLI::App* cmd, EngineFlags* flags);
void add_engine_flags(CLI::App* cmd, EngineFlags* flags);  // with the device flags

// Where packed weights and compiled modules are cached; empty with --no-cache.
std::string cache_folder(const EngineFlags& flags);

Result<std::unique_ptr<device::Device>> open_device(const EngineFlags& flags);
Result<OpenedEngine> open_engine(const EngineFlags& flags);

}  // namespace driftwood::cli
