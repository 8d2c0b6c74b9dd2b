// Which processor a thread runs on, and off it.
#pragma once

namespace driftwood::os {

// Of the calling thread, at this moment; -1 if the system does not tell. Some nanoseconds.
int current_processor();

// Moves the calling thread to another processor that it may use, if there is one; where it may run stays as
// it was. Three system calls. Does nothing where the system has no such call.
void leave_processor(int processor);

}  // namespace driftwood::os
