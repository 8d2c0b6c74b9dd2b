#include "cli/actor_host.h"

#include <cstdio>

#include "cli/model_locator.h"

namespace driftwood::cli {
namespace {

constexpr std::chrono::hours kForever{24 * 365};

constexpr const char* kLogLevels[] = {"debug", "info", "warning", "error"};

void print_output(const actor::Output& output) {
  std::fwrite(output.bytes.data(), 1, output.bytes.size(), stdout);
  std::fflush(stdout);
}

// A guest's text is data: no escape sequence reaches the terminal and no line break forges a line of its own.
void print_log(actor::ActorId, int level, std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::string line(text);
  for (char& c : line) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = c == '\n' ? ' ' : '?';
  }
  std::fprintf(stderr, "[%s] %s\n", kLogLevels[level < 0 || level > 3 ? 3 : level], line.c_str());
}

}  // namespace

void add_host_flags(CLI::App* cmd, HostFlags* flags) { add_engine_flags(cmd, &flags->engine); }

Result<std::unique_ptr<ActorHost>> ActorHost::open(const HostFlags& flags) {
  std::unique_ptr<ActorHost> host(new ActorHost());
  const bool without_model =
      flags.engine.model == "none" || (flags.model_is_optional && flags.engine.model == EngineFlags().model &&
                                       !locate_model(flags.engine.model).is_ok());
  if (without_model) {
    DW_ASSIGN_OR_RETURN(host->opened_.device, open_device(flags.engine));
  } else {
    DW_ASSIGN_OR_RETURN(host->opened_, open_engine(flags.engine));
  }
  wasm::RuntimeOptions options;
  if (const std::string cache = cache_folder(flags.engine); !cache.empty())
    options.cache_dir = cache + "/modules";
  DW_ASSIGN_OR_RETURN(host->runtime_, wasm::Runtime::create(options));
  host->system_ =
      actor::ActorSystem::create(host->runtime_, host->opened_.engine.get(), host->opened_.device.get(), {});
  return host;
}

ActorHost::~ActorHost() { system_.reset(); }

Result<std::shared_ptr<wasm::Module>> ActorHost::load_file(const std::string& path) {
  return runtime_->load_file(path);
}

Result<std::shared_ptr<wasm::Module>> ActorHost::load_bytes(const std::string& name,
                                                            std::span<const uint8_t> bytes) {
  return runtime_->load(name, bytes);
}

Result<actor::ActorId> ActorHost::spawn(const std::string& name, std::shared_ptr<wasm::Module> module,
                                        actor::ActorOptions options) {
  if (!options.output) options.output = print_output;
  if (!options.log) options.log = print_log;
  return system_->spawn(name, std::move(module), std::move(options));
}

Result<actor::ActorId> ActorHost::thaw(const std::string& name, const actor::FrozenActor& frozen,
                                       std::shared_ptr<wasm::Module> module, actor::ActorOptions options) {
  if (!options.output) options.output = print_output;
  if (!options.log) options.log = print_log;
  return system_->thaw(name, frozen, std::move(module), std::move(options));
}

Status ActorHost::turn(actor::ActorId id, std::string_view message) {
  DW_RETURN_IF_ERROR(system_->send(id, {reinterpret_cast<const uint8_t*>(message.data()), message.size()}));
  return wait_turn(id);
}

Status ActorHost::wait_turn(actor::ActorId id) { return system_->wait_idle(id, kForever); }

}  // namespace driftwood::cli
