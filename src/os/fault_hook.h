// FaultHook: lets a test fail or stop the process before any call that changes a file system.
//
// Every such call of this folder's durable files (atomic_file.h, folder_changes.h, file_lock.h) asks the hook
// first. Without a hook, the rule outside tests, that is one load and one branch. The hook is process-wide:
// set it while no other thread writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace driftwood::os {

enum class Change : uint8_t { kCreate, kWrite, kFlush, kRename, kRemove, kFlushFolder, kMakeFolder };

class FaultHook {
 public:
  virtual ~FaultHook() = default;
  // 0: go on. Else the call is not made and fails with this errno.
  virtual int before(Change change, const std::string& path) = 0;
};

// Null: none. Returns the one before; the caller keeps ownership.
FaultHook* set_fault_hook(FaultHook* hook);

namespace detail {
extern std::atomic<FaultHook*> fault_hook;
}  // namespace detail

inline int injected_fault(Change change, const std::string& path) {
  FaultHook* const hook = detail::fault_hook.load(std::memory_order_relaxed);
  return hook == nullptr ? 0 : hook->before(change, path);
}

}  // namespace driftwood::os
