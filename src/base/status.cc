#include "base/status.h"

namespace driftwood {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kCancelled: return "cancelled";
    case Code::kUnknown: return "unknown";
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kDeadlineExceeded: return "deadline_exceeded";
    case Code::kNotFound: return "not_found";
    case Code::kAlreadyExists: return "already_exists";
    case Code::kPermissionDenied: return "permission_denied";
    case Code::kResourceExhausted: return "resource_exhausted";
    case Code::kFailedPrecondition: return "failed_precondition";
    case Code::kAborted: return "aborted";
    case Code::kOutOfRange: return "out_of_range";
    case Code::kUnimplemented: return "unimplemented";
    case Code::kInternal: return "internal";
    case Code::kUnavailable: return "unavailable";
    case Code::kDataLoss: return "data_loss";
  }
  return "unknown";
}

std::string Status::to_string() const {
  if (is_ok()) return "ok";
  return std::string(code_name(code_)) + ": " + message_;
}

Status Status::with_context(std::string_view context) const {
  if (is_ok()) return *this;
  return Status(code_, std::string(context) + ": " + message_);
}

Status invalid_argument(std::string m) { return Status(Code::kInvalidArgument, std::move(m)); }
Status not_found(std::string m) { return Status(Code::kNotFound, std::move(m)); }
Status already_exists(std::string m) { return Status(Code::kAlreadyExists, std::move(m)); }
Status permission_denied(std::string m) { return Status(Code::kPermissionDenied, std::move(m)); }
Status resource_exhausted(std::string m) { return Status(Code::kResourceExhausted, std::move(m)); }
Status failed_precondition(std::string m) { return Status(Code::kFailedPrecondition, std::move(m)); }
Status aborted(std::string m) { return Status(Code::kAborted, std::move(m)); }
Status cancelled(std::string m) { return Status(Code::kCancelled, std::move(m)); }
Status deadline_exceeded(std::string m) { return Status(Code::kDeadlineExceeded, std::move(m)); }
Status out_of_range(std::string m) { return Status(Code::kOutOfRange, std::move(m)); }
Status unimplemented(std::string m) { return Status(Code::kUnimplemented, std::move(m)); }
Status internal_error(std::string m) { return Status(Code::kInternal, std::move(m)); }
Status unavailable(std::string m) { return Status(Code::kUnavailable, std::move(m)); }
Status data_loss(std::string m) { return Status(Code::kDataLoss, std::move(m)); }

}  // namespace driftwood
