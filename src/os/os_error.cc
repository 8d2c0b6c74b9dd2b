#include "os/os_error.h"

#include <cerrno>
#include <system_error>

namespace driftwood::os {
namespace {

Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case EEXIST:
      return Code::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EFBIG:
      return Code::kResourceExhausted;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
      return Code::kInvalidArgument;
    case EIO:
      return Code::kDataLoss;
    default:
      return Code::kUnavailable;
  }
}

}  // namespace

Status errno_status(int error, const std::string& context) {
  // O_NOFOLLOW answers ELOOP for a single link.
  const std::string what = error == ELOOP ? "is a symbolic link where none may be, or leads through too many"
                                          : std::generic_category().message(error);
  return Status(code_of(error), context + ": " + what);
}

}  // namespace driftwood::os
