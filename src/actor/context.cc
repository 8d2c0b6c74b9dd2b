#include "actor/context.h"

namespace driftwood::actor {

DeviceWindow::~DeviceWindow() { close(); }

Status DeviceWindow::open(device::Device* device, region::Region& memory) {
  if (stream_ == nullptr) {
    device_ = device;
    stream_ = device->make_stream();
  }
  const size_t committed = memory.committed_bytes();
  if (device->info().pointers_are_host || committed == registered_bytes_) return Status::ok();
  uint8_t* piece = memory.base() + registered_bytes_;
  DW_ASSIGN_OR_RETURN(uint8_t* pointer, device->register_host(piece, committed - registered_bytes_));
  pieces_.push_back(piece);
  if (pointer != piece) return unavailable("the device can't use host memory by its own address");
  registered_bytes_ = committed;
  return Status::ok();
}

void DeviceWindow::close() {
  // A fault of the device was reported by the call that met it; here only idleness matters.
  if (stream_ != nullptr) static_cast<void>(stream_->wait());
  for (uint8_t* piece : pieces_) static_cast<void>(device_->unregister_host(piece));
  pieces_.clear();
  registered_bytes_ = 0;
  stream_.reset();
}

Status ActorContext::check_tokens(int64_t count) const {
  const int64_t used = tokens_appended + tokens_generated;
  if (count <= options.limits.max_tokens - used) return Status::ok();
  return resource_exhausted("this actor may use " + std::to_string(options.limits.max_tokens) +
                            " tokens in its life and has used " + std::to_string(used));
}

}  // namespace driftwood::actor
