// The op table of the CPU device: checks arguments, cuts an op into units, runs its kernel on the pool.
#pragma once

#include "device/device.h"

namespace driftwood::device {

const OpTable& cpu_op_table();

}  // namespace driftwood::device
