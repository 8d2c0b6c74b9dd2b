// The system's stat and timespec structures to and from ours (folder.h).
#pragma once

#include <sys/stat.h>
#include <time.h>

#include "os/file_stamp.h"
#include "os/folder.h"

namespace driftwood::os {

FileInfo file_info_from(const struct stat& info);
FileStamp file_stamp_from(const struct stat& info);

struct TimePair {
  timespec t[2];
};
TimePair time_pair(TimeChange accessed, TimeChange modified);

}  // namespace driftwood::os
