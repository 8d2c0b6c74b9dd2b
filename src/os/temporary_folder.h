// TemporaryFolder: a private folder of this process, removed with everything in it when the object goes.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace driftwood::os {

class TemporaryFolder {
 public:
  // Below TMPDIR, or /tmp. `prefix` begins its name.
  static Result<std::unique_ptr<TemporaryFolder>> create(const std::string& prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace driftwood::os
