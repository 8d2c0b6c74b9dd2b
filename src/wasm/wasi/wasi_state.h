// WasiState: what one instance has of the outside: its descriptors, arguments, environment, clocks, random.
//
// Descriptors 0, 1, 2 are an empty stdin and the two sinks; granted folders follow from 3, as wasi-libc
// expects. A folder's rights are those of its grant for ever; a file's are at most its folder's. Owned by the
// instance and used on its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/descriptor.h"
#include "os/folder.h"
#include "wasm/runtime.h"
#include "wasm/wasi/wasi_types.h"

namespace driftwood::wasm {

inline constexpr uint32_t kMaxDescriptors = 256;

struct WasiDescriptor {
  enum class Kind : uint8_t { kClosed, kStdin, kStdout, kStderr, kFolder, kFile };
  Kind kind = Kind::kClosed;
  bool granted = false;  // a folder of WasiOptions, not one opened beneath it
  uint16_t flags = 0;    // fdflags
  uint64_t rights = 0;
  uint64_t inheriting = 0;
  os::Descriptor file;
  std::string guest_path;
  std::vector<os::FolderEntry> listing;  // of a folder, as the first fd_readdir saw it
};

class WasiState {
 public:
  // Opens the granted folders; an error names the one that cannot be opened.
  static Result<std::unique_ptr<WasiState>> create(const WasiOptions& options);

  // The descriptor if it is open, or null.
  WasiDescriptor* find(uint32_t fd);
  // Takes the lowest free number; kMfile when there are kMaxDescriptors.
  Errno insert(WasiDescriptor descriptor, uint32_t* fd);
  void close(uint32_t fd) { descriptors_[fd] = WasiDescriptor{}; }
  // Moves `from` onto `to`, closing what was there.
  void renumber(uint32_t from, uint32_t to);

  const WasiOptions& options() const { return options_; }
  uint64_t clock_ns(uint32_t clock_id) const;
  void random(std::span<uint8_t> bytes) const;
  // NUL-terminated strings: arguments, and "NAME=value".
  const std::vector<std::string>& args() const { return options_.args; }
  const std::vector<std::string>& environment() const { return environment_; }

  std::vector<std::string> open_files() const;
  // What is not as it was at the start, beside open files: standard streams and granted folders that were
  // closed, moved or restricted, as "descriptor 1". A restored instance would have them back.
  std::vector<std::string> changed_descriptors() const;

 private:
  // What of a descriptor a guest can change.
  struct Standing {
    WasiDescriptor::Kind kind;
    uint16_t flags;
    uint64_t rights;
    uint64_t inheriting;
    std::string guest_path;
    bool operator==(const Standing&) const = default;
  };
  static Standing standing(const WasiDescriptor& descriptor);

  explicit WasiState(const WasiOptions& options);
  Status grant(const WasiOptions::Folder& folder);

  const WasiOptions& options_;  // the instance's own copy
  std::vector<std::string> environment_;
  std::vector<WasiDescriptor> descriptors_;
  std::vector<Standing> at_start_;
  uint64_t started_ns_;
};

}  // namespace driftwood::wasm
