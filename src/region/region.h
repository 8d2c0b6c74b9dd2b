// Region: page-aligned, mmap-backed memory that guest, CPU and device address by the same pointer
// (DESIGN 4.1).
//
// A region reserves address space (PROT_NONE), commits it from the front by mprotect, and never moves. It
// owns the mapping; everybody else borrows. Device registrations are undone before it is unmapped. Committed
// bytes are zero until written. Sizes here are bytes and multiples of the OS page; a Wasm page (64 KiB) is
// not one. A region on files begins with pieces of them, copy-on-write: their pages come in when touched, and
// the files never change. Such a region must not be registered with a device as a whole (registering copies
// every page). Threads: one thread at a time grows it; bytes may be used by any thread while the region
// lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace driftwood::region {

size_t os_page_bytes();

// Bytes of a regular file that a region begins with, or a piece of what it begins with. The descriptor stays
// the caller's and may be closed once the region is made. The file must be immutable from then on
// (os/memory_map.h says what happens otherwise). kNoFile stands for zeros and needs no file.
inline constexpr int kNoFile = -1;
struct FileImage {
  int fd = kNoFile;
  uint64_t offset = 0;  // a multiple of kImageAlignment; means nothing without a file
  size_t length = 0;    // a multiple of the OS page
};
inline constexpr uint64_t kImageAlignment = 65536;

// Bytes of a region, whole OS pages.
struct ByteRange {
  size_t offset = 0;
  size_t length = 0;
  bool operator==(const ByteRange&) const = default;
};

// How dirty pages are found: asking for private pages (Linux 6.7), reading the page map (Linux), or comparing
// with the base. kBest takes the first that this system has.
enum class DirtySource : uint8_t { kBest, kScan, kPageMap, kCompare };

class Region {
 public:
  // Reserves `reserve_bytes` followed by `guard_bytes` that are never accessible; commits `commit_bytes`.
  static Result<std::unique_ptr<Region>> create(size_t reserve_bytes, size_t guard_bytes,
                                                size_t commit_bytes);
  // The same, beginning with `pieces` one after the other; the committed bytes after them are zero
  // (commit_bytes is at least the sum of their lengths). Neighbours in one file are mapped as one.
  // invalid_argument names the piece with a bad size or offset, data_loss one that its file is too short for.
  static Result<std::unique_ptr<Region>> create_on_file(std::span<const FileImage> pieces,
                                                        size_t reserve_bytes, size_t guard_bytes,
                                                        size_t commit_bytes);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  uint8_t* base() const { return base_; }
  size_t committed_bytes() const { return committed_; }
  size_t reserved_bytes() const { return reserved_; }
  size_t image_bytes() const { return image_; }  // of them the pieces'; 0 for a region that began empty

  std::span<const ByteRange> file_ranges() const { return files_; }  // what of them began with a file

  // Makes the first `bytes` usable; never shrinks, never moves. out_of_range past the reservation.
  Status commit(size_t bytes);

  // pieces.cc. Both replace committed bytes, whole OS pages, that nobody uses meanwhile and no device has
  // registered; on an error what was there stays.
  // The piece's bytes from `offset` on, copy-on-write; with fd -1 zeros. invalid_argument names a bad size or
  // offset of the piece, data_loss a file that is shorter, resource_exhausted that the system's mappings are
  // used up.
  Status map_piece(size_t offset, const FileImage& piece);
  // Fresh zero pages, which cost nothing until they are touched.
  Status unmap_piece(size_t offset, size_t length);

  // True if [offset, offset + length) is committed; overflow-safe.
  bool contains(uint64_t offset, uint64_t length) const {
    return offset <= committed_ && length <= committed_ - offset;
  }

  // What differs from the base, in ascending order, neighbours joined: the files' pages that were written,
  // and of all other pages (after the pieces, and of pieces without a file) those that are not zero. A
  // device's writes count like any other. A file's page that was written with what it held counts with kScan
  // and kPageMap, not with kCompare. Comparing needs `base` (the pieces again, under any descriptors);
  // unimplemented if the system can't tell and there is none. Nobody may write meanwhile.
  Result<std::vector<ByteRange>> dirty_pages(DirtySource source = DirtySource::kBest,
                                             std::span<const FileImage> base = {}) const;

 private:
  Region(uint8_t* base, size_t reserved, size_t guard) : base_(base), reserved_(reserved), guard_(guard) {}
  Status map_pieces(std::span<const FileImage> pieces);
  uint8_t* base_;
  size_t reserved_;
  size_t guard_;
  size_t committed_ = 0;
  size_t image_ = 0;
  std::vector<ByteRange> files_;  // what began with a file
};

// Resident bytes of this process, from the operating system (figures for proofs and tests).
struct Residency {
  size_t rss_bytes = 0;        // resident set
  size_t anonymous_bytes = 0;  // of it, private anonymous
};
Result<Residency> process_residency();

}  // namespace driftwood::region
