#include "os/descriptor.h"

#include <unistd.h>

namespace driftwood::os {

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace driftwood::os
