#include "wasm/fork_image.h"

#include <algorithm>
#include <cstring>

#include "os/anonymous_file.h"
#include "region/page_runs.h"
#include "wasm/engine.h"

namespace driftwood::wasm {
namespace {

// Zeros as long as this are a piece of their own and need no page of the file, not even when they are read.
// So are a few pieces at most: each is a mapping of every child.
constexpr size_t kMinZeroPieceBytes = size_t{1} << 20;
constexpr size_t kMaxZeroPieces = 16;

// Pieces of whole Wasm pages, from the beginning to the last page that is not zero.
std::vector<region::FileImage> pieces_of(int fd, size_t memory_bytes,
                                         std::span<const region::ByteRange> not_zero) {
  const size_t gap = std::max(kMinZeroPieceBytes, memory_bytes / kMaxZeroPieces);
  std::vector<region::FileImage> pieces;
  size_t end = 0;
  for (const region::ByteRange& range : not_zero) {
    const size_t first = range.offset / kWasmPageBytes * kWasmPageBytes;
    const size_t last = (range.offset + range.length + kWasmPageBytes - 1) / kWasmPageBytes * kWasmPageBytes;
    if (first >= end + gap) pieces.push_back({region::kNoFile, 0, first - end});
    if (pieces.empty() || pieces.back().fd == region::kNoFile) {
      const size_t begin = first >= end + gap ? first : end;
      pieces.push_back({fd, begin, last - begin});
    } else {
      pieces.back().length = last - pieces.back().offset;
    }
    end = last;
  }
  return pieces;
}

}  // namespace

Result<std::unique_ptr<ForkImage>> ForkImage::create(std::span<const uint8_t> memory,
                                                     std::span<const region::ByteRange> not_zero,
                                                     std::span<const region::ByteRange> changed) {
  std::unique_ptr<ForkImage> made(new ForkImage());
  DW_ASSIGN_OR_RETURN(os::Descriptor file, os::create_anonymous_file(memory.size()));
  for (const region::ByteRange& range : not_zero) {
    DW_RETURN_IF_ERROR(
        os::write_all_at(file.get(), memory.subspan(range.offset, range.length), range.offset));
  }
  DW_RETURN_IF_ERROR(os::seal_file(file.get()));
  made->image_.pieces = pieces_of(file.get(), memory.size(), not_zero);
  made->image_.memory_bytes = memory.size();
  made->changed_.assign(changed.begin(), changed.end());
  const size_t bytes = made->image_.image_bytes();
  DW_ASSIGN_OR_RETURN(made->view_, region::Region::create_on_file(made->image_.pieces, bytes, 0, bytes));
  made->image_.owner = std::make_shared<const os::Descriptor>(std::move(file));
  return made;
}

std::vector<region::ByteRange> ForkImage::differing(const uint8_t* memory,
                                                    std::span<const region::ByteRange> changed) const {
  const size_t page = region::os_page_bytes();
  const size_t image_end = view_->committed_bytes();
  std::vector<region::ByteRange> pages;
  for (const region::ByteRange& range : region::united(changed, changed_)) {
    const size_t end = range.offset + range.length;
    const size_t middle = std::clamp(image_end, range.offset, end);
    for (size_t at = range.offset; at < middle; at += page) {
      if (std::memcmp(memory + at, view_->base() + at, page) != 0) region::append_range(&pages, at, page);
    }
    region::append_nonzero(&pages, memory, middle, end);
  }
  return pages;
}

}  // namespace driftwood::wasm
