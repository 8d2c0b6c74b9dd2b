// HostCall: the CallContext of a GuestInstance, with what only our own host functions (WASI) may do.
#pragma once

#include <chrono>
#include <string>

#include "wasm/runtime.h"

namespace driftwood::wasm {

class GuestInstance;
class WasiState;

class HostCall final : public CallContext {
 public:
  HostCall(GuestInstance* owner, void* user) : owner_(owner), user_(user) {}

  Instance& instance() override;
  void trap(std::string message) override;
  void* user() override { return user_; }

  // Ends the instance with an exit code, as proc_exit does.
  void exit(int code);
  WasiState& wasi();
  // True if the call is past its deadline or interrupted; the guest then ends as the host function returns. A
  // host function that waits or works long asks this now and then.
  bool end_if_due();
  // The same without consequences.
  bool is_due() const;
  std::chrono::milliseconds poll_period() const;

  // Set by trap() and exit(); the closure then unwinds the guest.
  bool ends() const { return ends_; }
  const std::string& message() const { return message_; }

 private:
  GuestInstance* owner_;
  void* user_;
  bool ends_ = false;
  std::string message_;
};

}  // namespace driftwood::wasm
