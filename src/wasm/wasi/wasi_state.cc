#include "wasm/wasi/wasi_state.h"

#include <cstring>
#include <utility>

#include "os/clock.h"
#include "os/random.h"

namespace driftwood::wasm {

WasiState::WasiState(const WasiOptions& options) : options_(options), started_ns_(os::monotonic_ns()) {
  for (const auto& [name, value] : options.env) environment_.push_back(name + "=" + value);
  using Kind = WasiDescriptor::Kind;
  descriptors_.resize(3);
  descriptors_[0].kind = Kind::kStdin;
  descriptors_[0].rights = rights::kFdRead | rights::kFdFilestatGet | rights::kPollFdReadwrite;
  for (size_t i = 1; i < 3; ++i) {
    descriptors_[i].kind = i == 1 ? Kind::kStdout : Kind::kStderr;
    descriptors_[i].rights = rights::kFdWrite | rights::kFdFilestatGet | rights::kPollFdReadwrite;
  }
}

Result<std::unique_ptr<WasiState>> WasiState::create(const WasiOptions& options) {
  std::unique_ptr<WasiState> state(new WasiState(options));
  for (const WasiOptions::Folder& folder : options.folders) DW_RETURN_IF_ERROR(state->grant(folder));
  for (const WasiDescriptor& descriptor : state->descriptors_)
    state->at_start_.push_back(standing(descriptor));
  return state;
}

Status WasiState::grant(const WasiOptions::Folder& folder) {
  WasiDescriptor descriptor;
  const int error = os::open_root_folder(folder.host_path, &descriptor.file);
  if (error != 0) {
    return invalid_argument("granted folder '" + folder.host_path + "' (for the guest '" + folder.guest_path +
                            "'): " + std::strerror(error));
  }
  const uint64_t allowed = folder.writable ? rights::kAll : rights::kAll & ~rights::kWriting;
  descriptor.kind = WasiDescriptor::Kind::kFolder;
  descriptor.granted = true;
  descriptor.rights = rights::kFolder & allowed;
  descriptor.inheriting = allowed;
  descriptor.guest_path = folder.guest_path;
  uint32_t fd = 0;
  if (insert(std::move(descriptor), &fd) != Errno::kSuccess)
    return resource_exhausted("too many granted folders");
  return Status::ok();
}

WasiDescriptor* WasiState::find(uint32_t fd) {
  if (fd >= descriptors_.size() || descriptors_[fd].kind == WasiDescriptor::Kind::kClosed) return nullptr;
  return &descriptors_[fd];
}

Errno WasiState::insert(WasiDescriptor descriptor, uint32_t* fd) {
  for (uint32_t i = 0; i < kMaxDescriptors; ++i) {
    if (i == descriptors_.size()) descriptors_.emplace_back();
    if (descriptors_[i].kind != WasiDescriptor::Kind::kClosed) continue;
    descriptors_[i] = std::move(descriptor);
    *fd = i;
    return Errno::kSuccess;
  }
  return Errno::kMfile;
}

void WasiState::renumber(uint32_t from, uint32_t to) {
  if (from == to) return;
  descriptors_[to] = std::move(descriptors_[from]);
  descriptors_[from] = WasiDescriptor{};
}

uint64_t WasiState::clock_ns(uint32_t clock_id) const {
  if (options_.clock_ns) return options_.clock_ns(clock_id);
  if (clock_id == kClockRealtime) return os::realtime_ns();
  // CPU clocks count from the start of the instance: other actors' work is none of this one's business.
  return clock_id == kClockMonotonic ? os::monotonic_ns() : os::monotonic_ns() - started_ns_;
}

void WasiState::random(std::span<uint8_t> bytes) const {
  if (options_.random_bytes) {
    options_.random_bytes(bytes);
  } else {
    os::random_bytes(bytes);
  }
}

std::vector<std::string> WasiState::open_files() const {
  std::vector<std::string> paths;
  for (const WasiDescriptor& descriptor : descriptors_) {
    const bool outside = descriptor.kind == WasiDescriptor::Kind::kFile ||
                         (descriptor.kind == WasiDescriptor::Kind::kFolder && !descriptor.granted);
    if (outside) paths.push_back(descriptor.guest_path);
  }
  return paths;
}

WasiState::Standing WasiState::standing(const WasiDescriptor& descriptor) {
  return {descriptor.kind, descriptor.flags, descriptor.rights, descriptor.inheriting, descriptor.guest_path};
}

std::vector<std::string> WasiState::changed_descriptors() const {
  std::vector<std::string> changed;
  for (size_t i = 0; i < descriptors_.size(); ++i) {
    const WasiDescriptor& now = descriptors_[i];
    const bool as_before = i < at_start_.size()
                               ? standing(now) == at_start_[i]
                               : now.kind == WasiDescriptor::Kind::kClosed ||
                                     now.kind == WasiDescriptor::Kind::kFile ||
                                     (now.kind == WasiDescriptor::Kind::kFolder && !now.granted);
    if (!as_before) changed.push_back("descriptor " + std::to_string(i));
  }
  return changed;
}

}  // namespace driftwood::wasm
