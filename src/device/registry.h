// Registry: the devices this program can offer, by name.
//
// The composition root (src/cli) adds one entry per backend, real or null; everything above asks for a device
// by name and never learns which backend stands behind it. A registry is filled before it is shared and
// read-only afterwards.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/device.h"

namespace driftwood::device {

// What a user may ask of any backend; a backend ignores what does not apply to it.
struct DeviceOptions {
  int threads = 0;  // 0: the backend's own choice
  std::string isa;  // "": the environment's or the best one
};

class Registry {
 public:
  using Factory = std::function<Result<std::unique_ptr<Device>>(const DeviceOptions&)>;

  struct Entry {
    std::string name;         // "cpu"
    std::string description;  // one line for `--help` and error messages
    Factory create;
  };

  // already_exists if the name is taken.
  Status add(Entry entry);

  // In the order they were added: the first is the default.
  const std::vector<Entry>& entries() const { return entries_; }

  // not_found names the devices there are; other errors come from the backend.
  Result<std::unique_ptr<Device>> create(std::string_view name, const DeviceOptions& options) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace driftwood::device
