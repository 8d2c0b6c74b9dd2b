// Owners for what the bridge allocates, and its statuses as ours. Only src/text includes this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "dw_bridge.h"

namespace driftwood::text {

// Bytes that the bridge writes. Reusable; frees itself.
class BridgeBytes {
 public:
  BridgeBytes() = default;
  BridgeBytes(const BridgeBytes&) = delete;
  BridgeBytes& operator=(const BridgeBytes&) = delete;
  ~BridgeBytes() { dwb_buf_free(&buf_); }
  dwb_buf* out() { return &buf_; }
  std::string_view view() const {
    return buf_.len == 0 ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(buf_.data), buf_.len);
  }
  std::string str() const { return std::string(view()); }

 private:
  dwb_buf buf_{};
};

class BridgeIds {
 public:
  BridgeIds() = default;
  BridgeIds(const BridgeIds&) = delete;
  BridgeIds& operator=(const BridgeIds&) = delete;
  ~BridgeIds() { dwb_ids_free(&ids_); }
  dwb_ids* out() { return &ids_; }
  const uint32_t* begin() const { return ids_.data; }
  const uint32_t* end() const { return ids_.data + ids_.len; }

 private:
  dwb_ids ids_{};
};

inline Status bridge_status(dwb_status code, const BridgeBytes& error) {
  switch (code) {
    case DWB_OK:
      return Status::ok();
    case DWB_INVALID_ARGUMENT:
      return invalid_argument(error.str());
    case DWB_UNSUPPORTED:
      return unimplemented(error.str());
    default:
      return internal_error(error.str());
  }
}

}  // namespace driftwood::text
