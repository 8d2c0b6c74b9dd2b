// Turns an errno value into a Status: code by kind (missing, not permitted, full disk, ...), message
// "CONTEXT: why".
#pragma once

#include <string>

#include "base/status.h"

namespace driftwood::os {

Status errno_status(int error, const std::string& context);

}  // namespace driftwood::os
