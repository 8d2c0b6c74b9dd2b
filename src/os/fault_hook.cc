#include "os/fault_hook.h"

namespace driftwood::os {

namespace detail {
std::atomic<FaultHook*> fault_hook{nullptr};
}  // namespace detail

FaultHook* set_fault_hook(FaultHook* hook) { return detail::fault_hook.exchange(hook); }

}  // namespace driftwood::os
