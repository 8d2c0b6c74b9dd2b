// Which pages of a region differ from what it began with.
//
// Where a region began with zeros a page is dirty if it is not zero, whatever the system says of it: pages
// that were only read and huge pages look written. Where it began with a file the system's word is taken.
#include <algorithm>
#include <cstring>
#include <string>

#include "os/memory_map.h"
#include "os/private_pages.h"
#include "region/page_runs.h"
#include "region/region.h"

namespace driftwood::region {
namespace {

// A second look at a file, for as long as a comparison takes.
class BaseView {
 public:
  static Result<std::unique_ptr<BaseView>> open(const FileImage& piece) {
    DW_ASSIGN_OR_RETURN(uint8_t* bytes, os::reserve_address_space(piece.length));
    std::unique_ptr<BaseView> view(new BaseView(bytes, piece.length));
    DW_RETURN_IF_ERROR(os::map_private_file(bytes, piece.length, piece.fd, piece.offset));
    return view;
  }
  ~BaseView() { os::release_address_space(bytes_, length_); }
  BaseView(const BaseView&) = delete;
  BaseView& operator=(const BaseView&) = delete;
  const uint8_t* bytes() const { return bytes_; }

 private:
  BaseView(uint8_t* bytes, size_t length) : bytes_(bytes), length_(length) {}
  uint8_t* bytes_;
  size_t length_;
};

// `files`: what began with a file, ascending; all else began with zeros.
std::vector<ByteRange> written(const uint8_t* base, const std::vector<os::PageRun>& runs,
                               const std::vector<ByteRange>& files) {
  std::vector<ByteRange> ranges;
  const size_t page = os::page_bytes();
  auto file = files.begin();
  for (const os::PageRun& run : runs) {
    size_t at = run.first * page;
    const size_t end = at + run.count * page;
    while (at < end) {
      while (file != files.end() && file->offset + file->length <= at) ++file;
      const size_t file_begin = file == files.end() ? end : std::min(end, file->offset);
      if (at < file_begin) append_nonzero(&ranges, base, at, file_begin);
      at = std::max(at, file_begin);
      if (at == end) break;
      const size_t file_end = std::min(end, file->offset + file->length);
      append_range(&ranges, at, file_end - at);
      at = file_end;
    }
  }
  return ranges;
}

Result<std::vector<ByteRange>> compared(const uint8_t* base, size_t committed, size_t image, bool on_files,
                                        std::span<const FileImage> pieces) {
  std::vector<ByteRange> ranges;
  if (!on_files) {
    append_nonzero(&ranges, base, 0, committed);
    return ranges;
  }
  if (pieces.empty()) {
    return unimplemented(
        "this system does not tell which pages were written, and there is no base to compare with");
  }
  size_t length = 0;
  for (const FileImage& piece : pieces) length += piece.length;
  if (length != image) {
    return invalid_argument("the base to compare with has " + std::to_string(length) +
                            " bytes, the region began with " + std::to_string(image));
  }
  const size_t page = os::page_bytes();
  size_t begin = 0;
  for (const FileImage& piece : pieces) {
    const size_t end = begin + piece.length;
    if (piece.fd == kNoFile) {
      append_nonzero(&ranges, base, begin, end);
    } else if (begin < end) {
      DW_ASSIGN_OR_RETURN(const std::unique_ptr<BaseView> view, BaseView::open(piece));
      for (size_t at = begin; at < end; at += page) {
        if (std::memcmp(base + at, view->bytes() + (at - begin), page) != 0) append_range(&ranges, at, page);
      }
    }
    begin = end;
  }
  append_nonzero(&ranges, base, image, committed);
  return ranges;
}

}  // namespace

Result<std::vector<ByteRange>> Region::dirty_pages(DirtySource source,
                                                   std::span<const FileImage> base) const {
  const auto ask = [&](auto system) -> Result<std::vector<ByteRange>> {
    DW_ASSIGN_OR_RETURN(const std::vector<os::PageRun> runs, system(base_, committed_));
    return written(base_, runs, files_);
  };
  if (source == DirtySource::kScan || source == DirtySource::kBest) {
    auto ranges = ask(os::scan_private_pages);
    if (source == DirtySource::kScan || ranges.is_ok()) return ranges;
    if (ranges.status().code() != Code::kUnimplemented) return ranges;
  }
  if (source == DirtySource::kPageMap || source == DirtySource::kBest) {
    auto ranges = ask(os::read_private_pages);
    if (source == DirtySource::kPageMap || ranges.is_ok()) return ranges;
    if (ranges.status().code() != Code::kUnimplemented) return ranges;
  }
  return compared(base_, committed_, image_, !files_.empty(), base);
}

}  // namespace driftwood::region
