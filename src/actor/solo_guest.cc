#include "actor/solo_guest.h"

#include <utility>

#include "actor/guest_options.h"

namespace driftwood::actor {
namespace {

constexpr ActorId kSoloId = 1;

// There is nobody to write to.
class NoPost final : public Post {
 public:
  Result<ActorId> find_receiver(std::string_view name) const override {
    return not_found("no actor is named '" + std::string(name) + "'");
  }
  Status check_receiver(ActorId id, uint64_t, size_t) const override {
    return not_found("there is no actor " + std::to_string(id));
  }
};

class Solo final : public SoloGuest {
 public:
  Solo(const std::string& name, ActorOptions options, engine::Engine* engine, device::Device* device)
      : context_(kSoloId, name, std::move(options), engine, device, &post_) {}
  ~Solo() override {
    context_.sessions.close_all(context_.engine);
    context_.window.close();
  }
  Status start(wasm::Runtime& runtime, std::shared_ptr<wasm::Module> module) {
    DW_ASSIGN_OR_RETURN(
        instance_, runtime.instantiate(std::move(module), host_imports(), instance_options_of(&context_)));
    return Status::ok();
  }
  wasm::Instance& instance() override { return *instance_; }
  const std::string& last_error() const override { return context_.last_error; }
  void flush() override {
    for (const Effects::Effect& effect : context_.effects.list()) {
      const std::span<const uint8_t> bytes = context_.effects.bytes(effect);
      ++sequence_;
      if (context_.options.output) {
        context_.options.output({kSoloId,
                                 1,
                                 sequence_,
                                 effect.kind,
                                 {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
      }
    }
    context_.effects.clear();
  }

 private:
  NoPost post_;
  ActorContext context_;
  std::unique_ptr<wasm::Instance> instance_;  // before context_ goes
  uint64_t sequence_ = 0;
};

}  // namespace

Result<std::unique_ptr<SoloGuest>> SoloGuest::create(wasm::Runtime& runtime,
                                                     std::shared_ptr<wasm::Module> module,
                                                     const std::string& name, ActorOptions options,
                                                     engine::Engine* engine, device::Device* device) {
  auto solo = std::make_unique<Solo>(name, std::move(options), engine, device);
  DW_RETURN_IF_ERROR(solo->start(runtime, std::move(module)));
  return std::unique_ptr<SoloGuest>(std::move(solo));
}

}  // namespace driftwood::actor
