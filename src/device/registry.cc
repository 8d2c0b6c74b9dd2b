#include "device/registry.h"

namespace driftwood::device {

Status Registry::add(Entry entry) {
  for (const Entry& known : entries_) {
    if (known.name == entry.name) return already_exists("device '" + entry.name + "' is already registered");
  }
  entries_.push_back(std::move(entry));
  return Status::ok();
}

Result<std::unique_ptr<Device>> Registry::create(std::string_view name, const DeviceOptions& options) const {
  std::string known;
  for (const Entry& entry : entries_) {
    if (entry.name == name) return entry.create(options);
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  return not_found("no device named '" + std::string(name) + "'; this build has: " + known);
}

}  // namespace driftwood::device
