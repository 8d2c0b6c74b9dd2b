#include "os/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "os/os_error.h"

namespace driftwood::os {

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::create(const std::string& prefix) {
  const char* root = ::getenv("TMPDIR");
  std::string path = std::string(root == nullptr || *root == 0 ? "/tmp" : root) + "/" + prefix + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return errno_status(errno, "making a temporary folder " + path);
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(std::move(path)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace driftwood::os
