// Status and Result<T>: how every fallible call reports failure.
//
// Three kinds of failure (DESIGN 4.6): our own bugs abort (DW_CHECK, check.h); the world's failures are a
// Status or Result; a guest's faults trap that actor. Codes carry the names absl uses. A message is written
// for the person who must act on it: it names the file, key, tensor, actor or flag, and the value that was
// found. Both types are [[nodiscard]]; neither throws.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace driftwood {

enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

inline constexpr int kCodeCount = 16;

// Stable lower-case name, e.g. "invalid_argument".
std::string_view code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    DW_CHECK(code != Code::kOk, "an error needs a code other than ok");
  }
  static Status ok() { return {}; }

  bool is_ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // "invalid_argument: model.gguf: ..." for logs and terminals.
  std::string to_string() const;

  // Returns this status with `context + ": "` put before the message; ok stays ok.
  Status with_context(std::string_view context) const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

Status invalid_argument(std::string message);
Status not_found(std::string message);
Status already_exists(std::string message);
Status permission_denied(std::string message);
Status resource_exhausted(std::string message);
Status failed_precondition(std::string message);
Status aborted(std::string message);
Status cancelled(std::string message);
Status deadline_exceeded(std::string message);
Status out_of_range(std::string message);
Status unimplemented(std::string message);
Status internal_error(std::string message);
Status unavailable(std::string message);
Status data_loss(std::string message);

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by intent
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by intent
    DW_CHECK(!status_.is_ok(), "a Result without a value needs an error");
  }

  bool is_ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // Preconditions: is_ok().
  T& value() & { return checked(); }
  const T& value() const& {
    DW_CHECK(value_.has_value(), status_.message().c_str());
    return *value_;
  }
  T&& value() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(checked()); }

 private:
  T& checked() {
    DW_CHECK(value_.has_value(), status_.message().c_str());
    return *value_;
  }
  std::optional<T> value_;
  Status status_;
};

#define DW_CONCAT_INNER(a, b) a##b
#define DW_CONCAT(a, b) DW_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expr` (a Status) is an error.
#define DW_RETURN_IF_ERROR(expr)                         \
  do {                                                   \
    ::driftwood::Status dw_status_ = (expr);             \
    if (!dw_status_.is_ok()) return dw_status_;          \
  } while (0)

// DW_ASSIGN_OR_RETURN(auto x, make_x()): x is the value, or the enclosing function returns the error.
#define DW_ASSIGN_OR_RETURN(lhs, expr) DW_ASSIGN_OR_RETURN_IMPL(DW_CONCAT(dw_result_, __LINE__), lhs, expr)
#define DW_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp.is_ok()) return tmp.status();         \
  lhs = std::move(*tmp)

}  // namespace driftwood
