// Inside a store we know what a file was: one that is missing or is no such file is damage, whatever a reader
// that knows nothing would call it.
#pragma once

#include "base/status.h"

namespace driftwood::snapshot {

inline Status as_damage(Status status) {
  const Code code = status.code();
  if (code != Code::kInvalidArgument && code != Code::kNotFound && code != Code::kOutOfRange) return status;
  return data_loss(status.message());
}

}  // namespace driftwood::snapshot
