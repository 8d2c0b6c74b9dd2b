// One line for Checkpoint::file_stamp().
#pragma once

#include <string>

#include "os/file_stamp.h"

namespace driftwood::format {

inline std::string file_stamp_text(const os::FileStamp& s) {
  return std::to_string(s.device) + ":" + std::to_string(s.inode) + ":" + std::to_string(s.size_bytes) + ":" +
         std::to_string(s.modified_ns) + ":" + std::to_string(s.changed_ns) + "\n";
}

}  // namespace driftwood::format
