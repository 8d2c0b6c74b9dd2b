// Changes to host folders that stay after a crash, and looks at what is in them. Errors name the path. Any
// thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "os/file_stamp.h"

namespace driftwood::os {

// One folder, 0700; fine if it is there.
Status make_private_folder(const std::string& path);
// A file (or a link to one), not a folder. Durable after flush_folder().
Status remove_file(const std::string& path);
Status flush_folder(const std::string& path);

bool is_folder(const std::string& path);
// The file at `path` itself, links not followed; invalid_argument if it is not a regular file.
Result<FileStamp> stamp_of(const std::string& path);
// Names in byte order, without "." and "..".
Result<std::vector<std::string>> names_in_folder(const std::string& path);

}  // namespace driftwood::os
