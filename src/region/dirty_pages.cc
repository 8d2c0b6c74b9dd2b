// Which pages of a region differ from what it began with.
#include <algorithm>
#include <cstring>
#include <string>

#include "os/memory_map.h"
#include "os/private_pages.h"
#include "region/region.h"

namespace driftwood::region {
namespace {

void append(std::vector<ByteRange>* ranges, size_t offset, size_t length) {
  if (!ranges->empty() && ranges->back().offset + ranges->back().length == offset) {
    ranges->back().length += length;
  } else {
    ranges->push_back(ByteRange{offset, length});
  }
}

bool is_zero(const uint8_t* bytes, size_t count) {
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

void append_nonzero(std::vector<ByteRange>* ranges, const uint8_t* base, size_t begin, size_t end) {
  const size_t page = os::page_bytes();
  for (size_t at = begin; at < end; at += page) {
    if (!is_zero(base + at, page)) append(ranges, at, page);
  }
}

// A second look at the file, for as long as a comparison takes.
class BaseView {
 public:
  static Result<std::unique_ptr<BaseView>> open(const FileImage& image) {
    DW_ASSIGN_OR_RETURN(uint8_t* bytes, os::reserve_address_space(image.length));
    std::unique_ptr<BaseView> view(new BaseView(bytes, image.length));
    DW_RETURN_IF_ERROR(os::map_private_file(bytes, image.length, image.fd, image.offset));
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

Result<std::vector<ByteRange>> scanned(const uint8_t* base, size_t committed) {
  DW_ASSIGN_OR_RETURN(const std::vector<os::PageRun> runs, os::scan_private_pages(base, committed));
  std::vector<ByteRange> ranges;
  for (const os::PageRun& run : runs)
    append(&ranges, run.first * os::page_bytes(), run.count * os::page_bytes());
  return ranges;
}

// Past the image a page that was only read looks written; what is zero there is as it began.
Result<std::vector<ByteRange>> page_mapped(const uint8_t* base, size_t committed, size_t image) {
  DW_ASSIGN_OR_RETURN(const std::vector<os::PageRun> runs, os::read_private_pages(base, committed));
  std::vector<ByteRange> ranges;
  for (const os::PageRun& run : runs) {
    const size_t begin = run.first * os::page_bytes();
    const size_t end = begin + run.count * os::page_bytes();
    const size_t middle = std::clamp(image, begin, end);
    if (begin < middle) append(&ranges, begin, middle - begin);
    append_nonzero(&ranges, base, middle, end);
  }
  return ranges;
}

Result<std::vector<ByteRange>> compared(const uint8_t* base, size_t committed, size_t image,
                                        const FileImage* file) {
  std::vector<ByteRange> ranges;
  const size_t page = os::page_bytes();
  if (image > 0) {
    if (file == nullptr) {
      return unimplemented(
          "this system does not tell which pages were written, and there is no base to compare with");
    }
    if (file->length != image) {
      return invalid_argument("the base to compare with has " + std::to_string(file->length) +
                              " bytes, the region began with " + std::to_string(image));
    }
    DW_ASSIGN_OR_RETURN(const std::unique_ptr<BaseView> view, BaseView::open(*file));
    for (size_t at = 0; at < image; at += page) {
      if (std::memcmp(base + at, view->bytes() + at, page) != 0) append(&ranges, at, page);
    }
  }
  append_nonzero(&ranges, base, image, committed);
  return ranges;
}

}  // namespace

Result<std::vector<ByteRange>> Region::dirty_pages(DirtySource source, const FileImage* base) const {
  switch (source) {
    case DirtySource::kScan:
      return scanned(base_, committed_);
    case DirtySource::kPageMap:
      return page_mapped(base_, committed_, image_);
    case DirtySource::kCompare:
      return compared(base_, committed_, image_, base);
    case DirtySource::kBest:
      break;
  }
  auto ranges = scanned(base_, committed_);
  if (ranges.is_ok() || ranges.status().code() != Code::kUnimplemented) return ranges;
  ranges = page_mapped(base_, committed_, image_);
  if (ranges.is_ok() || ranges.status().code() != Code::kUnimplemented) return ranges;
  return compared(base_, committed_, image_, base);
}

}  // namespace driftwood::region
