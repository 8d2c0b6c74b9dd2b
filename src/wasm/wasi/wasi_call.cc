#include "wasm/wasi/wasi_call.h"

#include <errno.h>

namespace driftwood::wasm {

Errno WasiCall::path(uint32_t pointer, uint32_t length, std::string* out) {
  const uint8_t* from = range(pointer, length);
  if (from == nullptr) return Errno::kFault;
  if (length == 0) return Errno::kNoent;
  if (length >= kMaxPathBytes) return Errno::kNametoolong;
  if (std::memchr(from, 0, length) != nullptr) return Errno::kInval;
  out->assign(reinterpret_cast<const char*>(from), length);
  return Errno::kSuccess;
}

Errno WasiCall::descriptor(uint32_t fd, uint64_t needed, WasiDescriptor** out) {
  WasiDescriptor* found = state_.find(fd);
  if (found == nullptr) return Errno::kBadf;
  if ((found->rights & needed) != needed) return Errno::kNotcapable;
  *out = found;
  return Errno::kSuccess;
}

Errno WasiCall::folder(uint32_t fd, uint64_t needed, WasiDescriptor** out) {
  WasiDescriptor* found = state_.find(fd);
  if (found == nullptr) return Errno::kBadf;
  if (found->kind != WasiDescriptor::Kind::kFolder) return Errno::kNotdir;
  return descriptor(fd, needed, out);
}

Errno errno_of(int system_error) {
  switch (system_error) {
    case 0: return Errno::kSuccess;
    case E2BIG: return Errno::k2Big;
    case EACCES: return Errno::kAccess;
    case EAGAIN: return Errno::kAgain;
    case EBADF: return Errno::kBadf;
    case EBUSY: return Errno::kBusy;
    case EDQUOT: return Errno::kDquot;
    case EEXIST: return Errno::kExist;
    case EFAULT: return Errno::kFault;
    case EFBIG: return Errno::kFbig;
    case EINTR: return Errno::kIntr;
    case EINVAL: return Errno::kInval;
    case EISDIR: return Errno::kIsdir;
    case ELOOP: return Errno::kLoop;
    case EMFILE: return Errno::kMfile;
    case EMLINK: return Errno::kMlink;
    case ENAMETOOLONG: return Errno::kNametoolong;
    case ENFILE: return Errno::kNfile;
    case ENODEV: return Errno::kNodev;
    case ENOENT: return Errno::kNoent;
    case ENOMEM: return Errno::kNomem;
    case ENOSPC: return Errno::kNospc;
    case ENOSYS: return Errno::kNosys;
    case ENOTDIR: return Errno::kNotdir;
    case ENOTEMPTY: return Errno::kNotempty;
    case ENOTSUP: return Errno::kNotsup;
    case ENXIO: return Errno::kNxio;
    case EOVERFLOW: return Errno::kOverflow;
    case EPERM: return Errno::kPerm;
    case EPIPE: return Errno::kPipe;
    case EROFS: return Errno::kRofs;
    case ESPIPE: return Errno::kSpipe;
    case ETXTBSY: return Errno::kTxtbsy;
    case EXDEV: return Errno::kNotcapable;  // os/folder.h: the path leaves the folder
    default: return Errno::kIo;
  }
}

}  // namespace driftwood::wasm
