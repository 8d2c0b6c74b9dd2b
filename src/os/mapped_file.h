// MappedFile: a regular file mapped read-only, whole.
//
// The bytes live as long as the object. Another process that truncates the file under the mapping turns a
// later read into SIGBUS; that is the usual price of mapping and the reason why validated sizes come from the
// size at opening. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "os/descriptor.h"
#include "os/file_stamp.h"
#include "os/mapped_memory.h"

namespace driftwood::os {

struct MapOptions {
  bool follow_link = true;       // else a link in the last place is invalid_argument
  bool keep_descriptor = false;  // see descriptor()
};

class MappedFile {
 public:
  // not_found, permission_denied, or invalid_argument if the path is no regular file. Never blocks on a pipe.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path, const MapOptions& options);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return {base_, size_}; }
  const std::string& path() const { return path_; }
  const FileStamp& stamp() const { return stamp_; }
  // Of the file, open as long as the object, with keep_descriptor; else -1.
  int descriptor() const { return fd_.get(); }

  // Tells the system that these bytes (inside bytes()) will not be needed soon: whole pages leave this
  // process's resident set; a later read faults them in again.
  void drop_pages(std::span<const uint8_t> range) const;

 private:
  MappedFile(std::string path, const uint8_t* base, size_t size, FileStamp stamp)
      : path_(std::move(path)), base_(base), size_(size), stamp_(stamp) {}
  std::string path_;
  const uint8_t* base_;
  size_t size_;
  FileStamp stamp_;
  Descriptor fd_;
};

// A regular file's bytes in memory of its own: nobody else can change or cut them. Costs as much memory.
class FileCopy {
 public:
  // data_loss if the file gets shorter meanwhile; else as MappedFile::open().
  static Result<FileCopy> read(const std::string& path);
  std::span<const uint8_t> bytes() const { return {memory_.data(), size_}; }

 private:
  MappedMemory memory_;
  size_t size_ = 0;
};

// The whole text of a regular file of at most max_bytes, copied (resource_exhausted if it is larger).
Result<std::string> read_text_file(const std::string& path, size_t max_bytes, bool follow_link = true);

}  // namespace driftwood::os
