#include "region/region.h"

#include <string>

#include "os/memory_map.h"
#include "region/page_runs.h"

namespace driftwood::region {
namespace {

// Rounds up to the OS page; false when that overflows.
bool round_to_page(size_t bytes, size_t* rounded) {
  const size_t page = os::page_bytes();
  if (bytes > SIZE_MAX - (page - 1)) return false;
  *rounded = (bytes + page - 1) / page * page;
  return true;
}

std::string piece_name(size_t first, size_t last) {
  if (first == last) return "image piece " + std::to_string(first);
  return "image pieces " + std::to_string(first) + " to " + std::to_string(last);
}

// The sum of the lengths, if every piece is one that can be mapped and all fit.
Result<size_t> checked_length(std::span<const FileImage> pieces, size_t commit_bytes) {
  size_t length = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const FileImage& piece = pieces[i];
    if (piece.fd != kNoFile && piece.offset % kImageAlignment != 0) {
      return invalid_argument(piece_name(i, i) + " begins at offset " + std::to_string(piece.offset) +
                              " of its file: it must be a multiple of " + std::to_string(kImageAlignment));
    }
    if (piece.length % os::page_bytes() != 0) {
      return invalid_argument(piece_name(i, i) + " of " + std::to_string(piece.length) +
                              " bytes: not whole pages of " + std::to_string(os::page_bytes()));
    }
    if (piece.length > commit_bytes - length) {
      return invalid_argument(piece_name(i, i) + " of " + std::to_string(piece.length) + " bytes at " +
                              std::to_string(length) + " is past the end of its region of " +
                              std::to_string(commit_bytes));
    }
    length += piece.length;
  }
  return length;
}

// Whether `next` goes on where a run of pieces of `length` bytes that begins with `first` ends.
bool continues(const FileImage& first, size_t length, const FileImage& next) {
  if (next.length == 0) return true;
  return next.fd == first.fd && (first.fd == kNoFile || next.offset - first.offset == length);
}

}  // namespace

size_t os_page_bytes() { return os::page_bytes(); }

Result<std::unique_ptr<Region>> Region::create(size_t reserve_bytes, size_t guard_bytes,
                                               size_t commit_bytes) {
  size_t reserve = 0;
  size_t guard = 0;
  if (!round_to_page(reserve_bytes, &reserve) || !round_to_page(guard_bytes, &guard) ||
      guard > SIZE_MAX - reserve) {
    return invalid_argument("region of " + std::to_string(reserve_bytes) + " + " +
                            std::to_string(guard_bytes) + " guard bytes is larger than the address space");
  }
  if (commit_bytes > reserve) {
    return out_of_range("region: commit of " + std::to_string(commit_bytes) +
                        " bytes is past the reservation of " + std::to_string(reserve));
  }
  // Address space without any page has no pointer; one guard page gives an empty region a base.
  if (reserve == 0 && guard == 0) guard = os::page_bytes();
  DW_ASSIGN_OR_RETURN(uint8_t* base, os::reserve_address_space(reserve + guard));
  std::unique_ptr<Region> region(new Region(base, reserve, guard));
  DW_RETURN_IF_ERROR(region->commit(commit_bytes));
  return region;
}

Result<std::unique_ptr<Region>> Region::create_on_file(std::span<const FileImage> pieces,
                                                       size_t reserve_bytes, size_t guard_bytes,
                                                       size_t commit_bytes) {
  DW_ASSIGN_OR_RETURN(const size_t length, checked_length(pieces, commit_bytes));
  DW_ASSIGN_OR_RETURN(std::unique_ptr<Region> region, create(reserve_bytes, guard_bytes, 0));
  if (length > region->reserved_) {
    return out_of_range("image of " + std::to_string(length) + " bytes is past the reservation of " +
                        std::to_string(region->reserved_));
  }
  DW_RETURN_IF_ERROR(region->map_pieces(pieces));
  DW_RETURN_IF_ERROR(region->commit(commit_bytes));
  return region;
}

Status Region::map_pieces(std::span<const FileImage> pieces) {
  for (size_t i = 0; i < pieces.size();) {
    const FileImage& first = pieces[i];
    size_t length = first.length;
    size_t next = i + 1;
    while (length > 0 && next < pieces.size() && continues(first, length, pieces[next])) {
      length += pieces[next].length;
      ++next;
    }
    // Zeros at the end are committed with what follows them.
    if (first.fd != kNoFile && length > 0) {
      DW_RETURN_IF_ERROR(commit(image_));
      const Status mapped = os::map_private_file(base_ + image_, length, first.fd, first.offset);
      if (!mapped.is_ok()) return mapped.with_context(piece_name(i, next - 1));
      committed_ = image_ + length;
      append_range(&files_, image_, length);
    }
    image_ += length;
    i = next;
  }
  return Status::ok();
}

Region::~Region() { os::release_address_space(base_, reserved_ + guard_); }

Status Region::commit(size_t bytes) {
  if (bytes <= committed_) return Status::ok();
  size_t rounded = 0;
  if (!round_to_page(bytes, &rounded) || rounded > reserved_) {
    return out_of_range("region: commit of " + std::to_string(bytes) + " bytes is past the reservation of " +
                        std::to_string(reserved_));
  }
  DW_RETURN_IF_ERROR(os::commit_pages(base_ + committed_, rounded - committed_));
  committed_ = rounded;
  return Status::ok();
}

Result<Residency> process_residency() {
  DW_ASSIGN_OR_RETURN(const os::ProcessMemory memory, os::process_memory());
  return Residency{memory.rss_bytes, memory.anonymous_bytes};
}

}  // namespace driftwood::region
