// AtomicFile: a file that appears under its name whole and durable, or not at all.
//
// create() opens a temporary file in the target's folder; commit() flushes it, renames it over the target and
// flushes the folder. Without commit() (error, exception, crash of the caller's logic) the temporary is
// removed and an older target stays as it was. One thread at a time. Two writers of one path do not disturb
// each other: the last commit wins and either file is whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "os/file_stamp.h"
#include "os/mapped_memory.h"

namespace driftwood::os {

enum class FileAccess : uint32_t { kPrivate = 0600, kShared = 0644 };

class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path, FileAccess access);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;

  // Appends.
  Status write(std::span<const uint8_t> bytes);
  // At a place of its own; write() goes on where it was.
  Status write_at(uint64_t offset, std::span<const uint8_t> bytes);
  // Asks the system to begin putting these bytes on the disk (0: all from there): a later flush waits less.
  // Advice.
  void start_write_back(uint64_t offset, uint64_t bytes);
  Status set_size(uint64_t bytes);
  // Waits until what was written is on the disk. commit() then need not.
  Status flush();

  // Gives the file its final size with real disk space behind it (so that a full disk is an error here and
  // not a SIGBUS later) and maps it for writing. Once, instead of write(). The mapping stays valid after
  // commit().
  Result<MappedMemory> map_for_writing(size_t size_bytes);

  Status commit();
  // The same under another name of the same folder, perhaps without waiting for the disk (for what may be
  // lost or torn in a crash). Returns what the system says of the file under its name.
  enum class Durability { kFlushed, kUnflushed };
  Result<FileStamp> commit_as(const std::string& path, Durability durability = Durability::kFlushed);

 private:
  AtomicFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  void abandon();
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  bool flushed_ = false;
};

// Removes the temporaries in a folder that processes which ended in the middle left there; not those that
// somebody is still writing. What cannot be removed stays.
void remove_abandoned_files(const std::string& folder);

Status write_file_atomically(const std::string& path, std::span<const uint8_t> bytes, FileAccess access);

// Makes a folder and its missing parents; new ones are 0700.
Status make_private_folders(const std::string& path);

}  // namespace driftwood::os
