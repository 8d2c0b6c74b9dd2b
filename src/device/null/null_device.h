// NullDevice: the twin of a backend that this build does not hold or that cannot run here.
//
// It answers to the backend's name, so that `--device NAME` explains itself instead of being unknown. Every
// op slot is null; memory calls return unimplemented with the reason.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"

namespace driftwood::device {

// `reason` completes "device 'cuda' is not available: ", e.g. "this build has no CUDA backend".
std::unique_ptr<Device> make_null_device(std::string name, std::string reason);

}  // namespace driftwood::device
