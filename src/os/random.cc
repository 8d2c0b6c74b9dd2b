#include "os/random.h"

#include <unistd.h>

#ifdef __APPLE__
#include <sys/random.h>
#endif

#include <algorithm>

#include "base/check.h"

namespace driftwood::os {

void random_bytes(std::span<uint8_t> bytes) {
  constexpr size_t kStep = 256;  // the most that getentropy gives
  for (size_t done = 0; done < bytes.size(); done += kStep) {
    const int result = getentropy(bytes.data() + done, std::min(kStep, bytes.size() - done));
    DW_CHECK(result == 0, "the system has no random numbers");
  }
}

}  // namespace driftwood::os
