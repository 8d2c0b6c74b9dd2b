#include "actor/guest_call.h"

#include <algorithm>

namespace driftwood::actor {

void GuestCall::trap_outside(uint64_t offset, uint64_t length) {
  context_.trap("actor '" + actor().name + "': " + name_ + ": offset " + std::to_string(offset) +
                ", length " + std::to_string(length) + " is outside its memory of " +
                std::to_string(instance().memory_bytes()) + " bytes");
}

Status GuestCall::misaligned(std::string_view what, uint64_t offset, size_t alignment) const {
  return invalid_argument(std::string(what) + " at offset " + std::to_string(offset) +
                          " must be aligned to " + std::to_string(alignment));
}

bool GuestCall::check_size(uint32_t found, size_t expected, Status* error) const {
  if (found == expected) return true;
  *error = invalid_argument("the struct's size field is " + std::to_string(found) + ", ABI 1 has " +
                            std::to_string(expected));
  return false;
}

int64_t GuestCall::fill(int index, std::span<const uint8_t> bytes) {
  std::span<uint8_t> out;
  if (!memory_at(index, &out)) return 0;
  const size_t count = std::min(out.size(), bytes.size());
  if (count != 0) std::memcpy(out.data(), bytes.data(), count);
  return static_cast<int64_t>(bytes.size());
}

int64_t GuestCall::fail(const Status& status) {
  actor().last_error = std::string(name_) + ": " + status.message();
  return -static_cast<int64_t>(status.code());
}

}  // namespace driftwood::actor
