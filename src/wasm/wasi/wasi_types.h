// WASI preview 1 in numbers: error codes, file types, rights, flags and structure sizes, as its witx says.
#pragma once

#include <cstdint>

namespace driftwood::wasm {

enum class Errno : uint16_t {
  kSuccess = 0,
  k2Big = 1,
  kAccess = 2,
  kAgain = 6,
  kBadf = 8,
  kBusy = 10,
  kCanceled = 11,
  kDquot = 19,
  kExist = 20,
  kFault = 21,
  kFbig = 22,
  kIntr = 27,
  kInval = 28,
  kIo = 29,
  kIsdir = 31,
  kLoop = 32,
  kMfile = 33,
  kMlink = 34,
  kNametoolong = 37,
  kNfile = 41,
  kNodev = 43,
  kNoent = 44,
  kNomem = 48,
  kNospc = 51,
  kNosys = 52,
  kNotdir = 54,
  kNotempty = 55,
  kNotsup = 58,
  kNxio = 60,
  kOverflow = 61,
  kPerm = 63,
  kPipe = 64,
  kRofs = 69,
  kSpipe = 70,
  kTxtbsy = 74,
  kXdev = 75,
  kNotcapable = 76,
};

enum class FileType : uint8_t {
  kUnknown = 0,
  kBlockDevice = 1,
  kCharacterDevice = 2,
  kDirectory = 3,
  kRegularFile = 4,
  kSocket = 6,
  kSymbolicLink = 7,
};

namespace rights {
inline constexpr uint64_t kFdDatasync = 1u << 0;
inline constexpr uint64_t kFdRead = 1u << 1;
inline constexpr uint64_t kFdSeek = 1u << 2;
inline constexpr uint64_t kFdFdstatSetFlags = 1u << 3;
inline constexpr uint64_t kFdSync = 1u << 4;
inline constexpr uint64_t kFdTell = 1u << 5;
inline constexpr uint64_t kFdWrite = 1u << 6;
inline constexpr uint64_t kFdAdvise = 1u << 7;
inline constexpr uint64_t kFdAllocate = 1u << 8;
inline constexpr uint64_t kPathCreateDirectory = 1u << 9;
inline constexpr uint64_t kPathCreateFile = 1u << 10;
inline constexpr uint64_t kPathLinkSource = 1u << 11;
inline constexpr uint64_t kPathLinkTarget = 1u << 12;
inline constexpr uint64_t kPathOpen = 1u << 13;
inline constexpr uint64_t kFdReaddir = 1u << 14;
inline constexpr uint64_t kPathReadlink = 1u << 15;
inline constexpr uint64_t kPathRenameSource = 1u << 16;
inline constexpr uint64_t kPathRenameTarget = 1u << 17;
inline constexpr uint64_t kPathFilestatGet = 1u << 18;
inline constexpr uint64_t kPathFilestatSetSize = 1u << 19;
inline constexpr uint64_t kPathFilestatSetTimes = 1u << 20;
inline constexpr uint64_t kFdFilestatGet = 1u << 21;
inline constexpr uint64_t kFdFilestatSetSize = 1u << 22;
inline constexpr uint64_t kFdFilestatSetTimes = 1u << 23;
inline constexpr uint64_t kPathSymlink = 1u << 24;
inline constexpr uint64_t kPathRemoveDirectory = 1u << 25;
inline constexpr uint64_t kPathUnlinkFile = 1u << 26;
inline constexpr uint64_t kPollFdReadwrite = 1u << 27;

inline constexpr uint64_t kAll = (1u << 28) - 1;
// What changes the host's files.
inline constexpr uint64_t kWriting = kFdDatasync | kFdSync | kFdWrite | kFdAllocate | kPathCreateDirectory |
                                     kPathCreateFile | kPathLinkSource | kPathLinkTarget | kPathRenameSource |
                                     kPathRenameTarget | kPathFilestatSetSize | kPathFilestatSetTimes |
                                     kFdFilestatSetSize | kFdFilestatSetTimes | kPathSymlink |
                                     kPathRemoveDirectory | kPathUnlinkFile;
inline constexpr uint64_t kPaths = kPathCreateDirectory | kPathCreateFile | kPathLinkSource | kPathLinkTarget |
                                   kPathOpen | kFdReaddir | kPathReadlink | kPathRenameSource |
                                   kPathRenameTarget | kPathFilestatGet | kPathFilestatSetSize |
                                   kPathFilestatSetTimes | kPathSymlink | kPathRemoveDirectory | kPathUnlinkFile;
// A folder cannot be read, written or sought; a file has no paths below it.
inline constexpr uint64_t kFolder = kPaths | kFdFilestatGet | kFdFilestatSetTimes | kFdSync | kFdDatasync;
inline constexpr uint64_t kFile = kAll & ~kPaths;
}  // namespace rights

namespace oflags {
inline constexpr uint16_t kCreate = 1, kDirectory = 2, kExclusive = 4, kTruncate = 8, kAll = 15;
}
namespace fdflags {
inline constexpr uint16_t kAppend = 1, kDsync = 2, kNonblock = 4, kRsync = 8, kSync = 16, kAll = 31;
}
namespace fstflags {
inline constexpr uint16_t kAccess = 1, kAccessNow = 2, kModify = 4, kModifyNow = 8, kAll = 15;
}
inline constexpr uint32_t kLookupSymlinkFollow = 1;

inline constexpr uint32_t kClockRealtime = 0, kClockMonotonic = 1, kClockProcessCpu = 2, kClockThreadCpu = 3;

// Structures are written field by field at fixed offsets.
inline constexpr uint32_t kFdstatBytes = 24, kFilestatBytes = 64, kPrestatBytes = 8, kDirentBytes = 24;
inline constexpr uint32_t kIovecBytes = 8, kSubscriptionBytes = 48, kEventBytes = 32;

}  // namespace driftwood::wasm
