#include "device/null/null_device.h"

#include <utility>

namespace driftwood::device {
namespace {

class NullStream final : public Stream {
 public:
  NullStream(Device& device, Status unavailable) : device_(device), unavailable_(std::move(unavailable)) {}
  Device& device() override { return device_; }
  Status wait() override { return unavailable_; }

 private:
  Device& device_;
  Status unavailable_;
};

class NullDevice final : public Device {
 public:
  NullDevice(std::string name, const std::string& reason)
      : unavailable_(unimplemented("device '" + name + "' is not available: " + reason)) {
    info_.name = std::move(name);
    info_.description = "not available: " + reason;
    info_.isa = "none";
    info_.numerics_id = "none";
    info_.pointers_are_host = false;
    info_.threads = 0;
  }

  const DeviceInfo& info() const override { return info_; }
  const OpTable& ops() const override { return ops_; }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<NullStream>(*this, unavailable_); }
  Result<std::unique_ptr<Buffer>> allocate(size_t) override { return unavailable_; }
  Result<uint8_t*> register_host(void*, size_t) override { return unavailable_; }
  Status unregister_host(void*) override { return unavailable_; }

 private:
  Status unavailable_;
  DeviceInfo info_;
  OpTable ops_;
};

}  // namespace

std::unique_ptr<Device> make_null_device(std::string name, std::string reason) {
  return std::make_unique<NullDevice>(std::move(name), reason);
}

}  // namespace driftwood::device
