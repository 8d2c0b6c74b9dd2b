#include "cli/composition.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "cli/checks.h"
#include "cli/model_locator.h"
#include "cli/printing.h"
#include "device/cpu/cpu_device.h"
#include "device/null/null_device.h"
#include "device/registry.h"

namespace driftwood::cli {
namespace {

const device::Registry& registry() {
  static const device::Registry instance = [] {
    device::Registry r;
    const auto add = [&r](device::Registry::Entry entry) {
      DW_CHECK(r.add(std::move(entry)).is_ok(), "a device is registered twice");
    };
    add({"cpu", "this machine's processor",
         [](const device::DeviceOptions& o) -> Result<std::unique_ptr<device::Device>> {
           DW_ASSIGN_OR_RETURN(std::unique_ptr<device::CpuDevice> cpu,
                               device::CpuDevice::create({o.threads, o.isa}));
           return std::unique_ptr<device::Device>(std::move(cpu));
         }});
    add({"null", "no backend: shows what an unsupported device answers", [](const device::DeviceOptions&) {
           return device::make_null_device("null", "the null device computes nothing");
         }});
    return r;
  }();
  return instance;
}

}  // namespace

void add_device_flags(CLI::App* cmd, EngineFlags* flags) {
  cmd->add_option("--device", flags->device, "Device: cpu")
      ->envname("DRIFTWOOD_DEVICE")
      ->capture_default_str();
  cmd->add_option("--isa", flags->isa, "Force an instruction set: ref, avx2, avxvnni, avx512 or neon")
      ->envname("DRIFTWOOD_CPU");
  cmd->add_option("--threads", flags->threads, "Worker threads; 0: one per physical core")
      ->envname("DRIFTWOOD_THREADS")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
}

void add_engine_flags(CLI::App* cmd, EngineFlags* flags) {
  cmd->add_option("--model", flags->model, "Model: path, folder, cache name or short name")
      ->envname("DRIFTWOOD_MODEL")
      ->capture_default_str();
  add_device_flags(cmd, flags);
  cmd->add_option("--kv", flags->kv, "KV cache format")
      ->envname("DRIFTWOOD_KV")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  cmd->add_option("--context", flags->max_context, "Tokens a session may hold; 0: the model's limit")
      ->envname("DRIFTWOOD_CONTEXT")
      ->check(whole_number(0, kMostInt64))
      ->capture_default_str();
  cmd->add_option(
         "--weights-memory", flags->weights_memory,
         "Bytes of weights to hold in memory (\"4GB\"), the rest read from disk for each step; 0: as the "
         "machine can spare")
      ->envname("DRIFTWOOD_WEIGHTS_MEMORY")
      ->transform(byte_size())
      ->type_name("SIZE")
      ->capture_default_str();
  cmd->add_flag("--verify-cache", flags->verify_cache,
                "Compare the packed-weight cache with its checksums first")
      ->envname("DRIFTWOOD_VERIFY_CACHE");
  cmd->add_flag("--no-cache", flags->no_cache, "Keep no packed weights and no compiled modules on disk");
}

std::string cache_folder(const EngineFlags& flags) { return flags.no_cache ? "" : cache_root(); }

Result<std::unique_ptr<device::Device>> open_device(const EngineFlags& flags) {
  return registry().create(flags.device, {flags.threads, flags.isa});
}

Result<OpenedEngine> open_engine(const EngineFlags& flags) {
  OpenedEngine opened;
  DW_ASSIGN_OR_RETURN(opened.device, open_device(flags));
  DW_ASSIGN_OR_RETURN(const std::string path, locate_model(flags.model));
  const int load_threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  DW_ASSIGN_OR_RETURN(opened.model, engine::load_model(path, {cache_folder(flags), load_threads,
                                                              flags.verify_cache, flags.weights_memory}));
  if (const std::string note = opened.model->weights->cache_note(); !note.empty())
    std::fprintf(stderr, "driftwood: packed weights: %s\n", printable(note).c_str());
  engine::EngineOptions options;
  options.kv_dtype = flags.kv == "f32" ? DType::kF32 : DType::kF16;
  options.max_context = flags.max_context;
  const char* activations = std::getenv("DRIFTWOOD_ACTIVATIONS");
  if (activations != nullptr && std::string_view(activations) == "f32") options.debug_f32_activations = true;
  DW_ASSIGN_OR_RETURN(opened.engine, engine::Engine::create(opened.model, opened.device.get(), options));
  return opened;
}

}  // namespace driftwood::cli
