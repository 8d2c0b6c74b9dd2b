#include "os/signals.h"

#include <signal.h>

namespace driftwood::os {

void ignore_file_size_signal() { static_cast<void>(::signal(SIGXFSZ, SIG_IGN)); }

}  // namespace driftwood::os
