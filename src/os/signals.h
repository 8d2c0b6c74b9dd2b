// Signals that would end the process where an error from the call is what we want.
#pragma once

namespace driftwood::os {

// A write past the file size limit (ulimit -f) fails with "file too large" instead of ending the process.
void ignore_file_size_signal();

}  // namespace driftwood::os
